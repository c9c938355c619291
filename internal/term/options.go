package term

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/charmbracelet/x/term"

	"hermes-mobile/device"
)

// Options configures a chat. It needs either Device or Config. Every other zero value stands for a
// good default.
type Options struct {
	// Device is the device to chat with. It stays open afterwards. Nobody else may read its events
	// meanwhile.
	Device *device.Device
	// Config opens a device for the duration of the chat when Device is nil.
	Config device.Config
	// Address appears in the connection line. Default: Config.URL.
	Address string

	// AgentOffline returns why the agent is offline, where this program knows, and otherwise nil.
	// It is optional. One goroutine calls it.
	AgentOffline func() error

	In  io.Reader // default os.Stdin
	Out io.Writer // default os.Stdout
	Err io.Writer // errors and notices of the line mode; default os.Stderr

	// SaveDir is the folder for received files. Default: Downloads/hermes in the user's home.
	SaveDir string
	// NoColor turns colors off, as NO_COLOR in the environment does.
	NoColor bool
	// Mouse makes the wheel scroll. Selecting text in the terminal then needs its modifier key.
	Mouse bool
	// Plain selects the line mode: each input line is a message, replies come as plain text when
	// they are complete, cards as numbered choices, and the end of the input ends the chat after
	// the last reply. Run selects it automatically when In or Out is not a terminal, or one that
	// cannot move its cursor.
	Plain bool
}

// ErrNotApproved means that the input of the line mode ended before the approval of this device. A
// durable Store keeps the messages, and the device sends them after the approval.
var ErrNotApproved = errors.New("this device is not approved yet: give the approval code above to the agent's owner, then try again")

// ErrUnanswered means that the input of the line mode ended while the agent waits for the answer to
// a card.
var ErrUnanswered = errors.New("the input ended while a card is open: answer it with another line, or in another client before it expires")

// offlineLimit is how long a script waits for an agent that is offline for a known reason.
var offlineLimit = 5 * time.Second

// why returns the reason why the agent is offline, or an empty string if it is unknown.
func (o Options) why() string {
	if o.AgentOffline == nil {
		return ""
	}
	if err := o.AgentOffline(); err != nil {
		return reason(err)
	}
	return ""
}

// closing is how long the device may take to close.
const closing = 3 * time.Second

// Run chats until the user quits (nil), the input of the line mode ends, or ctx ends (its error).
// In line mode it also returns why a chat is impossible (*device.NoAccessError, device.ErrReplaced,
// ErrNotApproved, ErrUnanswered), or why the server rejected a message. In full screen the user
// sees these errors and decides.
func Run(ctx context.Context, o Options) error {
	if o.In == nil {
		o.In = os.Stdin
	}
	if o.Out == nil {
		o.Out = os.Stdout
	}
	if o.Err == nil {
		o.Err = os.Stderr
	}
	if o.SaveDir == "" {
		o.SaveDir = downloads()
	}
	if o.Address == "" {
		o.Address = o.Config.URL
	}
	if o.Device == nil {
		d, err := device.Open(ctx, o.Config)
		if err != nil {
			return err
		}
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
			defer cancel()
			_ = d.Close(ctx) // the user leaves, and cannot wait longer
		}()
		o.Device = d
	}
	if o.Plain || !terminal(o.In) || !Capable(o.Out) {
		return runPlain(ctx, o)
	}
	return runFull(ctx, o)
}

// terminal reports whether a stream is a terminal. A stream that is not a file, such as a test or
// an SSH session, counts as one.
func terminal(s any) bool {
	f, ok := s.(*os.File)
	return !ok || term.IsTerminal(f.Fd())
}

// Capable reports whether a stream is a terminal that can do more than print lines. An Emacs shell,
// the console of an editor, a serial line, and docker exec without -e TERM cannot. A stream that is
// not a file counts as capable.
func Capable(s any) bool {
	if _, file := s.(*os.File); !file {
		return true
	}
	name, set := os.LookupEnv("TERM")
	return terminal(s) && (runtime.GOOS == "windows" && !set || name != "" && name != "dumb")
}

// downloads returns the folder where users look for files. The first file creates it.
func downloads() string {
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, "Downloads", "hermes")
	}
	return "."
}
