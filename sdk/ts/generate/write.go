package main

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"hermes-mobile/frame"
)

// direction tells which fields are optional. Down, the decoder fills in absent fields, so every
// field is there. Up, a field that may be left out is optional.
type direction bool

const (
	up   direction = true
	down direction = false
)

// writer writes the TypeScript.
type writer struct {
	bytes.Buffer
	source *source
	done   map[string]bool
}

func generate(dir string) ([]byte, error) {
	s, err := read(dir)
	if err != nil {
		return nil, err
	}
	w := &writer{source: s, done: map[string]bool{}}
	w.line("// Made from the Go package frame by `go run ./sdk/ts/generate`. Do not edit.")
	w.line("")
	w.line("/** The version of the device protocol that this package implements, as in ready.protocol. */")
	w.line("export const PROTOCOL = %d", frame.Protocol)
	w.codes("Code", "The reason in an error frame (doc/protocol.md §10).")
	w.numbers("CloseCode", "The close codes the server uses (doc/protocol.md §1), and what each asks of the client.")
	w.numbers("", "Limits of the protocol, in bytes unless noted otherwise (doc/protocol.md §1, §3, §5).")
	w.line("")
	w.line("/** Whether the server can reach the agent now; empty before the first ready. While the agent is away (offline), the server queues messages. */")
	w.line("export type AgentState = '' | 'online' | 'away'")

	var upNames, downNames []string
	for _, f := range upFrames {
		t := reflect.TypeOf(f).Elem()
		upNames = append(upNames, w.frame(t, frame.UpName(f), up))
	}
	for _, f := range downFrames {
		t := reflect.TypeOf(f).Elem()
		downNames = append(downNames, w.frame(t, frame.DownName(f), down))
	}
	w.union("Up", "A frame from a device to the server.", upNames)
	w.union("Down", "A frame from the server to a device.", downNames)
	w.shapes()
	return w.Bytes(), nil
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

func (w *writer) doc(indent, text string) {
	if text != "" {
		w.line("%s/** %s */", indent, strings.ReplaceAll(text, "*/", "* /"))
	}
}

// codes writes string constants as a union type.
func (w *writer) codes(kind, doc string) {
	w.line("")
	w.doc("", doc)
	w.line("export type %s =", kind)
	for _, c := range w.source.consts[kind] {
		w.doc("  ", c.doc)
		w.line("  | '%s'", strings.Trim(c.value, `"`))
	}
}

// numbers writes one export for each constant, so that a bundle holds only those it uses.
func (w *writer) numbers(kind, doc string) {
	w.line("")
	w.line("// %s", doc)
	for _, c := range w.source.consts[kind] {
		w.doc("", c.doc)
		w.line("export const %s = %s", constantName(c.name), strings.ReplaceAll(c.value, `"`, "'"))
	}
}

// constantName turns MaxFrame into MAX_FRAME.
func constantName(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) && !unicode.IsUpper(rune(name[i-1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

func (w *writer) union(name, doc string, members []string) {
	w.line("")
	w.doc("", doc)
	w.line("export type %s = %s", name, strings.Join(members, " | "))
}

// frame writes the interface of one frame and of the structs in it, and returns its name.
func (w *writer) frame(t reflect.Type, wire string, d direction) string {
	name := t.Name()
	if d == up && name == "Media" {
		name = "MediaUp" // the only type that goes both ways
	}
	w.object(t, name, wire, d)
	return name
}

func (w *writer) object(t reflect.Type, name, wire string, d direction) {
	if w.done[name] {
		return
	}
	w.done[name] = true
	for _, f := range fields(t) {
		if inner := structOf(f.Type); inner != nil {
			w.object(inner, inner.Name(), "", d)
		}
	}
	w.line("")
	w.doc("", w.source.docs[t.Name()])
	w.line("export interface %s {", name)
	if wire != "" {
		w.line("  t: '%s'", wire)
	}
	for _, f := range fields(t) {
		if name == "MediaUp" && slices.Contains(onlyDown, f.Name) {
			continue
		}
		optional := f.Type.Kind() == reflect.Pointer || f.raw || d == up && f.omit
		mark := ""
		if optional {
			mark = "?"
		}
		w.doc("  ", w.source.docs[t.Name()+"."+f.Name])
		w.line("  %s%s: %s", f.wire, mark, f.typescript())
	}
	w.line("}")
}

// onlyDown lists the fields of Media that only a server sends.
var onlyDown = []string{"Final", "ReplyTo", "Source", "URL", "Seq"}

// field is a member of a frame on the wire.
type field struct {
	reflect.StructField
	wire string
	omit bool // omitted when empty
	raw  bool // any JSON
}

func fields(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			all = append(all, field{f, strings.ToLower(f.Name), true, true})
			continue
		}
		all = append(all, field{f, name, options != "", false})
	}
	return all
}

var (
	timeType  = reflect.TypeFor[time.Time]()
	bytesType = reflect.TypeFor[[]byte]()
	codeType  = reflect.TypeFor[frame.Code]()
	agentType = reflect.TypeFor[frame.AgentState]()
)

// structOf returns the struct type of a struct, a pointer or a list, and nil for anything else.
func structOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == timeType {
		return nil
	}
	return t
}

func (f field) typescript() string {
	if f.raw {
		return "unknown"
	}
	return typeName(f.Type)
}

func typeName(t reflect.Type) string {
	switch t {
	case timeType:
		return "string"
	case bytesType:
		return "Uint8Array"
	case codeType:
		return "Code | (string & {})" // a later server may send others
	case agentType:
		return "AgentState"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		return "number"
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.Slice:
		return typeName(t.Elem()) + "[]"
	case reflect.Struct:
		return t.Name()
	}
	panic("a frame has a field of type " + t.String() + ": teach typeName about it")
}

// shapes writes the table that drives the decoder: the fields of each frame with the values of
// absent ones.
func (w *writer) shapes() {
	w.line("")
	w.line("/** The value of an absent field, 'bytes' for base64, 'any' for any JSON, a list for a list. A field whose name ends in ? stays absent. */")
	w.line("export type Shape = '' | 0 | false | 'bytes' | 'any' | readonly [Shape] | { [name: string]: Shape }")
	w.line("")
	var inner []reflect.Type
	for _, f := range downFrames {
		for _, g := range fields(reflect.TypeOf(f).Elem()) {
			if t := structOf(g.Type); t != nil && !slices.Contains(inner, t) {
				for _, h := range fields(t) {
					if u := structOf(h.Type); u != nil && !slices.Contains(inner, u) {
						inner = append(inner, u)
					}
				}
				inner = append(inner, t)
			}
		}
	}
	for _, t := range inner {
		w.line("const %s = %s as const", variable(t), shape(t))
	}
	w.line("")
	w.line("/** The frames that the server sends, by their type. */")
	w.line("export const DOWN: { [type in Down['t']]: { [name: string]: Shape } } = {")
	for _, f := range downFrames {
		w.line("  %s: %s,", frame.DownName(f), shape(reflect.TypeOf(f).Elem()))
	}
	w.line("}")
}

func variable(t reflect.Type) string { return strings.ToLower(t.Name()[:1]) + t.Name()[1:] }

func shape(t reflect.Type) string {
	var parts []string
	for _, f := range fields(t) {
		name := f.wire
		if f.raw || f.Type.Kind() == reflect.Pointer {
			name = "'" + name + "?'"
		}
		value := "'any'"
		if !f.raw {
			value = zero(f.Type)
		}
		parts = append(parts, name+": "+value)
	}
	if len(parts) == 0 {
		return "{}"
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

func zero(t reflect.Type) string {
	switch {
	case t == bytesType:
		return "'bytes'"
	case t == timeType, t.Kind() == reflect.String:
		return "''"
	case t.Kind() == reflect.Bool:
		return "false"
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return "0"
	case t.Kind() == reflect.Pointer:
		return zero(t.Elem())
	case t.Kind() == reflect.Slice:
		return "[" + zero(t.Elem()) + "]"
	}
	return variable(t)
}
