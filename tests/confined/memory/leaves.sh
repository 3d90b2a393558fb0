# Tries to open each file of cgroups below a directory that could be written, and to make cgroups there. Prints what it could, and how much it tried.
tried=0
for file in $(find "$1" \( -name 'memory.*max' -o -name pids.max -o -name 'cgroup.*' \) -perm -200); do
    tried=$((tried + 1))
    { true >>"$file"; } 2>/dev/null && echo "opened $file"
done
for directory in $(find "$1" -type d); do
    tried=$((tried + 1))
    mkdir "$directory/own" 2>/dev/null && echo "made $directory/own"
done
echo "tried $tried"
