// Package toolcrib is what `tool.go` is written with: definitions, calls, failures, files and requests.
package toolcrib

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"

	"go.bytecodealliance.org/pkg/wit/types"
	"toolcrib.local/plugin/build/bindings/imports/toolcrib_plugin_events"
	"toolcrib.local/plugin/build/bindings/imports/toolcrib_plugin_files"
	"toolcrib.local/plugin/build/bindings/imports/toolcrib_plugin_http"
	"toolcrib.local/plugin/build/bindings/imports/toolcrib_plugin_tools"
	"toolcrib.local/plugin/build/bindings/imports/toolcrib_plugin_types"
)

// Tool is one tool. The schemas of its arguments and of its result follow from the types of `Call`.
type Tool struct {
	Name                                    string
	Title, Usage                            string // Optional.
	Summary                                 string // One sentence.
	WhenToUse, WhenNotToUse, Disambiguation string
	Examples                                []any // Arguments, as a model would give them.
	Call                                    Function
}

// Function is what `Func` makes.
type Function struct {
	input, output string
	call          func(arguments []byte) (any, error)
}

// Func takes a function from arguments, which are a struct, to any value that is JSON.
//
// Tags of the fields say more: `json:"path"`, `json:"path,omitempty"` (may be omitted), `about:"File to count."`,
// `enum:"one,two"`.
func Func[In, Out any](function func(In) (Out, error)) Function {
	output := ""
	if out := reflect.TypeFor[Out](); out.Kind() == reflect.Struct {
		output = jsonOf(schema(out))
	}
	return Function{jsonOf(schema(reflect.TypeFor[In]())), output, func(arguments []byte) (any, error) {
		var input In
		if err := json.Unmarshal(arguments, &input); err != nil {
			return nil, Failure{Kind: "invalid_arguments", Message: err.Error()}
		}
		return function(input)
	}}
}

// Failure is why a call or a capability failed. Any other error of a tool is `execution_failed`.
//
// `Kind` is `invalid_arguments`, `denied`, `limit`, `timed_out`, `cancelled`, `busy`, `unavailable`,
// `outcome_unknown`, `execution_failed` or `internal`; `Message` says what happened, `Hint` what to change, and
// `Data` is a JSON value with what is known nevertheless.
type Failure struct {
	Kind, Message, Hint string
	Data                any
}

func (failure Failure) Error() string { return failure.Message }

// Host makes two values of what a function of a capability returns: `entry, err := toolcrib.Host(files.Stat(path))`.
func Host[T any](result wit_types.Result[T, toolcrib_plugin_types.Failure]) (value T, err error) {
	if result.IsOk() {
		return result.Ok(), nil
	}
	failed := result.Err()
	failure := Failure{Kind: failed.Kind, Message: failed.Message, Hint: failed.Hint.SomeOr("")}
	if failed.Data.IsSome() {
		failure.Data = json.RawMessage(failed.Data.Some())
	}
	return value, failure
}

// ReadText returns a whole text file of at most 4 MiB.
func ReadText(path string) (string, error) {
	whole, err := Host(toolcrib_plugin_files.ReadWhole(text(path)))
	return whole.Content, err
}

// Write replaces or creates a file.
func Write(path string, content []byte) error {
	_, err := Host(toolcrib_plugin_files.Write(text(path), content))
	return err
}

// Request is a request to a host that the user has allowed. `Limit` is how many bytes of the response to return:
// 1 MiB by default, at most 8 MiB.
type Request struct {
	Method, URL string
	Headers     map[string]string
	Body        []byte
	Limit       uint32
}

// Response is what a server answered. Names of headers are in lower case.
type Response struct {
	Status    int
	Headers   map[string]string
	URL       string
	Body      []byte
	Truncated bool
}

// Get sends a GET.
func Get(url string) (Response, error) { return Request{Method: "GET", URL: url}.Send() }

// Send sends the request and waits for the response. One of any status is no error.
func (request Request) Send() (Response, error) {
	prepared := toolcrib_plugin_http.MakeRequest(text(request.Method), text(request.URL))
	for name, value := range request.Headers {
		prepared.Header(text(name), text(value))
	}
	if request.Body != nil {
		prepared.Body(request.Body)
	}
	if request.Limit != 0 {
		prepared.Limit(request.Limit)
	}
	raw, err := Host(prepared.Send())
	response := Response{int(raw.Status), map[string]string{}, raw.Url, raw.Body, raw.Truncated}
	for _, header := range raw.Headers {
		if before, twice := response.Headers[header.F0]; twice {
			header.F1 = before + ", " + header.F1
		}
		response.Headers[header.F0] = header.F1
	}
	return response, err
}

// Debug and the like say something to whoever watches the call. They also see what it prints, as Info.
func Debug(format string, values ...any) { log(toolcrib_plugin_events.Level_Debug, format, values) }
func Info(format string, values ...any)  { log(toolcrib_plugin_events.Level_Info, format, values) }
func Warn(format string, values ...any)  { log(toolcrib_plugin_events.Level_Warn, format, values) }
func Error(format string, values ...any) { log(toolcrib_plugin_events.Level_Error, format, values) }

func log(level toolcrib_plugin_events.Level, format string, values []any) {
	toolcrib_plugin_events.Log(level, text(fmt.Sprintf(format, values...)))
}

// Progress says how far the call is, to whoever watches it. A `total` of 0 is unknown.
func Progress(done, total uint64, message string) {
	of := wit_types.Some(total)
	if total == 0 {
		of = wit_types.None[uint64]()
	}
	toolcrib_plugin_events.Progress(done, of, optional(message))
}

// Notice tells the caller something beside the result, in a sentence.
func Notice(format string, values ...any) {
	notices = append(notices, text(fmt.Sprintf(format, values...)))
}

// AttachText and the like add a part to the result.
func AttachText(part string) { attach(toolcrib_plugin_tools.MakeContentText(text(part))) }
func AttachLink(url string)  { attach(toolcrib_plugin_tools.MakeContentLink(text(url))) }
func AttachImage(bytes []byte, mediaType string) {
	attach(toolcrib_plugin_tools.MakeContentImage(wit_types.Tuple2[string, []byte]{F0: text(mediaType), F1: bytes}))
}
func AttachAudio(bytes []byte, mediaType string) {
	attach(toolcrib_plugin_tools.MakeContentAudio(wit_types.Tuple2[string, []byte]{F0: text(mediaType), F1: bytes}))
}

var (
	plugin  []Tool
	notices []string
	parts   []toolcrib_plugin_tools.Content
)

func attach(part toolcrib_plugin_tools.Content) { parts = append(parts, part) }

// Plugin says which tools the plugin has; for `init`, as `main` does not run in a plugin.
func Plugin(tools ...Tool) { plugin = tools }

// Definitions is what the host asks for once.
func Definitions() (definitions []toolcrib_plugin_tools.Definition) {
	for _, tool := range plugin {
		guidance := toolcrib_plugin_tools.Guidance{
			WhenToUse: tool.WhenToUse, WhenNotToUse: tool.WhenNotToUse, Disambiguation: tool.Disambiguation,
		}
		for _, example := range tool.Examples {
			guidance.Examples = append(guidance.Examples, jsonOf(example))
		}
		definitions = append(definitions, toolcrib_plugin_tools.Definition{
			Name: tool.Name, Title: optional(tool.Title), Summary: tool.Summary, Guidance: guidance,
			Usage: optional(tool.Usage), InputSchema: tool.Call.input, OutputSchema: optional(tool.Call.output),
		})
	}
	return definitions
}

// Call runs one tool. Each call of a plugin begins with memory of its own.
func Call(name, arguments string) wit_types.Result[toolcrib_plugin_tools.Output, toolcrib_plugin_tools.Failure] {
	result, err := run(name, []byte(arguments))
	if err != nil {
		return wit_types.Err[toolcrib_plugin_tools.Output](failureOf(err))
	}
	return wit_types.Ok[toolcrib_plugin_tools.Output, toolcrib_plugin_tools.Failure](
		toolcrib_plugin_tools.Output{Json: result, Content: parts, Notices: notices})
}

func run(name string, arguments []byte) (result string, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			fmt.Printf("panic: %v\n%s", reason, debug.Stack())
			err = fmt.Errorf("panic: %v%s", reason, place())
		}
	}()
	for _, tool := range plugin {
		if tool.Name != name {
			continue
		}
		value, err := tool.Call.call(arguments)
		if err != nil {
			return "", err
		}
		written, err := marshal(value)
		if err != nil {
			return "", Failure{Kind: "internal", Message: fmt.Sprintf("the result of `%s` is not JSON: %v", name, err)}
		}
		return written, nil
	}
	return "", Failure{Kind: "invalid_arguments", Message: fmt.Sprintf("there is no tool `%s`", name)}
}

// place returns the line in package main that panicked, as ` (tool.go:12)`.
func place() string {
	callers := make([]uintptr, 100)
	frames := runtime.CallersFrames(callers[:runtime.Callers(0, callers)])
	for {
		frame, more := frames.Next()
		if strings.HasPrefix(frame.Function, "main.") {
			return fmt.Sprintf(" (%s:%d)", filepath.Base(frame.File), frame.Line)
		}
		if !more {
			return ""
		}
	}
}

func failureOf(err error) toolcrib_plugin_tools.Failure {
	var failure Failure
	if !errors.As(err, &failure) {
		failure = Failure{Kind: "execution_failed", Message: err.Error()}
	}
	data := wit_types.None[string]()
	if failure.Data != nil {
		data = wit_types.Some(jsonOf(failure.Data))
	}
	return toolcrib_plugin_tools.Failure{
		Kind: text(failure.Kind), Message: text(failure.Message), Hint: optional(failure.Hint), Data: data,
	}
}

// schema returns the JSON Schema of what `encoding/json` makes of a type.
func schema(of reflect.Type) map[string]any {
	switch of.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Pointer:
		return schema(of.Elem())
	case reflect.Slice, reflect.Array:
		return map[string]any{"type": "array", "items": schema(of.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schema(of.Elem())}
	case reflect.Struct:
		properties, required := map[string]any{}, []string{}
		for _, field := range reflect.VisibleFields(of) {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !field.IsExported() || name == "-" {
				continue
			}
			if name == "" {
				name = field.Name
			}
			property := schema(field.Type)
			if about := field.Tag.Get("about"); about != "" {
				property["description"] = about
			}
			if enum := field.Tag.Get("enum"); enum != "" {
				property["enum"] = strings.Split(enum, ",")
			}
			properties[name] = property
			if !strings.Contains(options, "omit") {
				required = append(required, name)
			}
		}
		return map[string]any{
			"type": "object", "properties": properties, "required": required, "additionalProperties": false,
		}
	default:
		return map[string]any{}
	}
}

func marshal(value any) (string, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return strings.TrimSuffix(buffer.String(), "\n"), err
}

func jsonOf(value any) string {
	written, err := marshal(value)
	if err != nil {
		panic(err)
	}
	return written
}

func optional(value string) wit_types.Option[string] {
	if value == "" {
		return wit_types.None[string]()
	}
	return wit_types.Some(text(value))
}

// text replaces what is not UTF-8 by U+FFFD: a host ends a plugin that hands over anything else.
func text(value string) string { return strings.ToValidUTF8(value, "\ufffd") }
