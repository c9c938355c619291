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

// Options says whom to chat with and where. Either Device or Config is needed; every other zero value means a good default.
type Options struct {
	// Device to chat with; it stays open afterwards. Nobody else may take events from it meanwhile.
	Device *device.Device
	// Config opens a device for the time of the chat when Device is nil.
	Config device.Config
	// Address is shown in the connection line. Default: Config.URL.
	Address string

	// AgentOffline says why the agent is offline, where that is known here; nil while it is not. It may be nil itself, and is called
	// by one goroutine.
	AgentOffline func() error

	In  io.Reader // default os.Stdin
	Out io.Writer // default os.Stdout
	Err io.Writer // what went wrong, in line mode; default os.Stderr

	// SaveDir takes received files. Default: Downloads/hermes in the person's home.
	SaveDir string
	// NoColor leaves colours out. NO_COLOR in the environment does too.
	NoColor bool
	// Mouse lets the wheel scroll; the terminal's own selection then needs its modifier key.
	Mouse bool
	// Plain is the line mode: one line of input is one message, replies come as plain text when they are whole, cards as
	// numbered choices, and the end of the input ends the chat once the last answer is there. It is chosen by itself where
	// In or Out is a file that is no terminal, or a terminal that cannot move its cursor.
	Plain bool
}

// ErrNotApproved: the input of the line mode ended before this device was approved; what was written is kept, where the
// device's Store is durable, and sent when it is.
var ErrNotApproved = errors.New("this device is not approved yet: give the code above to the agent's owner, then try again")

// ErrUnanswered: the input of the line mode ended while the agent waits for the answer to a question.
var ErrUnanswered = errors.New("the input ended while a question is open: answer it with a further line, or in another client before it expires")

// offlineLimit is how long a script waits for an agent whose absence has a known cause.
var offlineLimit = 5 * time.Second

// why is the known cause of the agent's absence, in words; empty where there is none.
func (o Options) why() string {
	if o.AgentOffline == nil {
		return ""
	}
	if err := o.AgentOffline(); err != nil {
		return reason(err)
	}
	return ""
}

// closing is how long the device may take to say goodbye.
const closing = 3 * time.Second

// Run chats until the person leaves (nil), the input of the line mode ends, or ctx ends (its error). In line mode it also
// returns the reason why there can be no chat (*device.NoAccessError, device.ErrReplaced, ErrNotApproved, ErrUnanswered), or why a
// message was refused; in full screen the person sees it and decides.
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
			d.Close(ctx)
		}()
		o.Device = d
	}
	if o.Plain || !terminal(o.In) || !Capable(o.Out) {
		return runPlain(ctx, o)
	}
	return runFull(ctx, o)
}

// terminal reports whether a stream is one; a stream that is no file (a test, an SSH session) is taken at its word.
func terminal(s any) bool {
	f, ok := s.(*os.File)
	return !ok || term.IsTerminal(f.Fd())
}

// Capable reports whether a stream is a terminal that can do more than print lines. Emacs' shell, the console of an editor, a serial
// line, and docker exec without -e TERM cannot. A stream that is no file is taken at its word.
func Capable(s any) bool {
	if _, file := s.(*os.File); !file {
		return true
	}
	name, set := os.LookupEnv("TERM")
	return terminal(s) && (runtime.GOOS == "windows" && !set || name != "" && name != "dumb")
}

// downloads is where people look for files; it is made when the first one comes.
func downloads() string {
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, "Downloads", "hermes")
	}
	return "."
}
