package frame

import (
	"reflect"

	"github.com/go-json-experiment/json"
)

// upType describes one type of frame that a device sends. The fields are those of the struct's
// tags.
type upType struct {
	name  string
	new   func() Up
	check func(f Up, r raw) error // what the types of the fields cannot say; it also drops what is ignored
	// loose reports whether a field is ignored where it has the wrong type, instead of failing the
	// frame.
	loose   func(field string, r raw) bool
	options json.Options
}

// downType describes one type of frame that a server sends.
type downType struct {
	name string
	new  func() Down
}

// upTypes holds all frames that a device sends, in the order of the documentation.
var upTypes = []upType{
	newUp("hello", (*Hello).check, looseHello, helloOptions),
	newUp("text", (*Text).check, looseText, strict),
	newUp("audio", (*Audio).check, nil, strictBase64),
	newUp("media", (*Media).check, looseMedia, strictBase64),
	newUp("prompt", (*Answer).check, nil, strict),
	newUp("stop", (*Stop).check, nil, strict),
	newUp("ack", (*Ack).check, looseAck, strict),
	newUp("deliver", (*Deliver).check, looseDeliver, strictBase64),
	newUp("ping", (*Ping).check, nil, strict),
	newUp("call", (*Call).check, nil, strict),
}

// downTypes holds all frames that a server sends, in the order of the documentation.
var downTypes = []downType{
	newDown[Ready]("ready"),
	newDown[CapabilitiesChanged]("capabilities"),
	newDown[Approved]("approved"),
	newDown[Accepted]("accepted"),
	newDown[Delivered]("delivered"),
	newDown[Message]("message"),
	newDown[Media]("media"),
	newDown[Prompt]("prompt"),
	newDown[PromptDone]("prompt_done"),
	newDown[Echo]("echo"),
	newDown[Notice]("notice"),
	newDown[Typing]("typing"),
	newDown[Avatar]("avatar"),
	newDown[Tool]("tool"),
	newDown[Pong]("pong"),
	newDown[Result]("result"),
	newDown[Error]("error"),
}

func newUp[F any, P interface {
	*F
	Up
}](name string, check func(P, raw) error, loose func(field string, r raw) bool, options json.Options) upType {
	return upType{
		name:    name,
		new:     func() Up { return P(new(F)) },
		check:   func(f Up, r raw) error { return check(f.(P), r) },
		loose:   loose,
		options: options,
	}
}

func newDown[F any, P interface {
	*F
	Down
}](name string) downType {
	return downType{name: name, new: func() Down { return P(new(F)) }}
}

// The registry by the name on the wire, and the names by Go type. They are read only.
var (
	upByName   = map[string]*upType{}
	downByName = map[string]*downType{}
	upNames    = map[reflect.Type]string{}
	downNames  = map[reflect.Type]string{}
)

func init() {
	for i := range upTypes {
		t := &upTypes[i]
		upByName[t.name] = t
		upNames[reflect.TypeOf(t.new())] = t.name
	}
	for i := range downTypes {
		t := &downTypes[i]
		downByName[t.name] = t
		downNames[reflect.TypeOf(t.new())] = t.name
	}
}

// UpTypes returns a zero value of every frame that a device sends, in the order of the
// documentation. It is for generators and tests.
func UpTypes() []Up {
	all := make([]Up, len(upTypes))
	for i, t := range upTypes {
		all[i] = t.new()
	}
	return all
}

// DownTypes returns a zero value of every frame that a server sends, in the order of the
// documentation. It is for generators and tests.
func DownTypes() []Down {
	all := make([]Down, len(downTypes))
	for i, t := range downTypes {
		all[i] = t.new()
	}
	return all
}

// UpName returns the value of "t" for a frame that a device sends, such as "text" for a [*Text].
func UpName(f Up) string { return upNames[reflect.TypeOf(f)] }

// DownName returns the value of "t" for a frame that a server sends, such as "message" for a
// [*Message], and Unknown.Type for an [*Unknown].
func DownName(f Down) string {
	if u, ok := f.(*Unknown); ok {
		return u.Type
	}
	return downNames[reflect.TypeOf(f)]
}
