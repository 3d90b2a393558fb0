// Three tools in Go: one that reads a file, one that makes a request, one that fails in every way.
//
// It replaces `tool.go` of a project that `toolcrib plugin new --lang go` made, whose `toolcrib/toolcrib.go` it uses.
package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"unicode/utf8"

	_ "toolcrib.local/plugin/build/bindings/exports/wit_exports" // What the host calls.
	"toolcrib.local/plugin/build/bindings/imports/toolcrib_plugin_files"
	"toolcrib.local/plugin/toolcrib"
)

type path struct {
	Path string `json:"path" about:"File to count."`
}

type counted struct {
	Lines int `json:"lines"`
}

func lines(input path) (counted, error) {
	toolcrib.Progress(0, 1, input.Path)
	text, err := toolcrib.ReadText(input.Path)
	if err != nil {
		return counted{}, err
	}
	toolcrib.Notice("%d characters", utf8.RuneCountInString(text))
	toolcrib.AttachText(input.Path)
	return counted{strings.Count(text, "\n")}, nil
}

type address struct {
	URL string `json:"url" about:"Address to ask."`
}

type got struct {
	Status int    `json:"status"`
	Bytes  int    `json:"bytes"`
	Type   string `json:"type,omitempty"`
	Start  string `json:"start"`
}

func get(input address) (got, error) {
	request := toolcrib.Request{Method: "GET", URL: input.URL, Headers: map[string]string{"accept": "text/plain"}}
	response, err := request.Send()
	if err != nil {
		return got{}, err
	}
	start := string(response.Body[:min(8, len(response.Body))])
	return got{response.Status, len(response.Body), response.Headers["content-type"], start}, nil
}

type way struct {
	How string `json:"how" about:"The way."`
}

var nothing map[string]int

func fail(input way) (any, error) {
	switch input.How {
	case "kind":
		return nil, toolcrib.Failure{
			Kind: "busy", Message: "somebody else has it", Hint: "try again later",
			Data: map[string]any{"left": []any{1, "two"}},
		}
	case "throw":
		nothing["missing"] = 1
	case "error":
		return nil, errors.New("an error that is not a failure")
	case "capability":
		return toolcrib.ReadText("none")
	case "caught":
		_, err := toolcrib.Host(toolcrib_plugin_files.Stat("none"))
		var failure toolcrib.Failure
		is := errors.As(err, &failure)
		return map[string]any{"failure": is, "kind": failure.Kind, "message": failure.Message, "hint": failure.Hint}, nil
	case "spin":
		for {
		}
	case "big":
		return strings.Repeat("x", 1<<20+1), nil
	case "memory":
		for all := [][]byte{}; ; {
			all = append(all, make([]byte, 1<<20))
		}
	case "recursion":
		return recurse(1), nil
	case "deadlock":
		select {}
	case "goroutine":
		go func() { nothing["missing"] = 1 }()
		select {}
	case "exit":
		os.Exit(3)
	case "nan":
		return math.NaN(), nil
	case "half":
		return nil, errors.New("half of \xf0\x9f")
	case "log":
		fmt.Println("said", map[string]string{"by": "a tool"})
		toolcrib.Warn("warned by %s", "a tool")
		return nil, nil
	case "config":
		return os.Getenv("GREETING"), nil
	case "random":
		return rand.Float64(), nil
	case "image":
		toolcrib.AttachImage([]byte("\x89PNG"), "image/png")
		toolcrib.AttachLink("https://example.com/")
		return nil, nil
	}
	return nil, toolcrib.Failure{Kind: "invalid_arguments", Message: fmt.Sprintf("`%s` is not a way", input.How)}
}

func recurse(depth int) int { return recurse(depth+1) + 1 }

func init() {
	toolcrib.Plugin(
		toolcrib.Tool{Name: "go_lines", Summary: "Count the lines of a text file.", Call: toolcrib.Func(lines)},
		toolcrib.Tool{Name: "go_get", Summary: "Make a GET request.", Call: toolcrib.Func(get)},
		toolcrib.Tool{Name: "go_fail", Summary: "Fail in a way of your choice.", Call: toolcrib.Func(fail)},
	)
}

func main() {} // Go wants it; a plugin never runs it.
