// The interface `time` of `clock.wit`. The generator gives the package its name, and writes the `main` that calls it.
package export_example_clock_time

import "time"

func GetCurrentTime() string {
	// Not RFC3339Nano, which drops zeros at the end: every answer has three digits.
	return time.Now().UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
