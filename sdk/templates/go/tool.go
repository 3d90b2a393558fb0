// `{{name}}`: greets.
package main

import (
	_ "toolcrib.local/plugin/build/bindings/exports/wit_exports" // What the host calls.
	"toolcrib.local/plugin/toolcrib"
)

type input struct {
	Name string `json:"name,omitempty" about:"Whom to greet; default: the world."`
}

type output struct {
	Greeting string `json:"greeting"`
}

// A failure is an error: `toolcrib.Failure{Kind: "execution_failed", Message: "what happened", Hint: "what to change"}`.
// A panic fails the call too, with its message and its line.
func greet(in input) (output, error) {
	if in.Name == "" {
		in.Name = "world"
	}
	return output{"Hello, " + in.Name + "!"}, nil
}

func init() {
	// A second tool is a second argument.
	toolcrib.Plugin(toolcrib.Tool{
		Name:           "{{name}}",
		Summary:        "Greet somebody by name.",
		WhenToUse:      "You want a greeting.",
		WhenNotToUse:   "You want to send the greeting to somebody: this tool sends nothing.",
		Disambiguation: "No other tool greets.",
		Examples:       []any{input{"Ada"}},
		Call:           toolcrib.Func(greet),
	})
}

func main() {} // Go wants it; a plugin never runs it.
