package relay

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/quota"
)

// FilesBy says how files of devices reach a gateway.
type FilesBy string

// The ways in which files reach a gateway.
const (
	ByAddress FilesBy = "address" // a signed address of ours that the gateway fetches
	ByCopy    FilesBy = "copy"    // a path on this machine
	ByEither  FilesBy = "either"  // a path where the gateway is known to see the copy, else an address
	ByNothing FilesBy = ""        // an older gateway on another machine takes none
)

var (
	errNoFiles  = errors.New("its gateway cannot take files, being an older version on another machine")
	errFileGone = errors.New("the file is no longer on the server, send it again")
	errNoSpace  = errors.New("the server has no space for the copy of the file that this gateway needs, send it again later")
)

// fileRoute brings files of users to one gateway.
type fileRoute struct {
	config func() *Gateway
	seq    *sequencer
	log    *slog.Logger
	run    func(func(ctx context.Context)) bool // runs a function in a goroutine of the agent
	files  agent.Files
	links  *fileLinks
	wire   *wire
	traits *traits
}

// by returns how files reach the gateway (doc/hermes/relay.md §5). An older one takes copies only. A
// newer one gets copies if its owner says that it is on this machine, or if it is seen to be: a
// gateway that merely dials from here may be a container with another disk.
func (r *fileRoute) by() FilesBy {
	switch told := r.config().Local; {
	case !r.local() && r.traits.version == Older:
		return ByNothing
	case !r.local():
		return ByAddress
	case r.traits.version != Older && told == nil:
		return ByEither
	}
	return ByCopy
}

// local reports whether the gateway can read our files.
func (r *fileRoute) local() bool {
	if l := r.config().Local; l != nil {
		return *l
	}
	return r.wire.link != nil && r.wire.link.local
}

// base is the address at which the gateway fetches files.
func (r *fileRoute) base() string {
	if u := r.config().PublicURL; u != "" {
		return strings.TrimRight(u, "/")
	}
	if r.wire.link != nil {
		return r.wire.link.base
	}
	return ""
}

// attach finds the path or address of a file for the gateway, and calls then with it, locked. It is
// a copy on this machine under the file's name, or an address of ours that only this gateway may
// read. It is never anything that the device said.
func (r *fileRoute) attach(input int64, f *agent.File, then func(url string, err error)) {
	address := func() { then(r.base()+r.links.down(r.config().ID, f), nil) }
	by, l := r.by(), r.wire.link
	switch by {
	case ByNothing:
		then("", errNoFiles)
		return
	case ByAddress:
		address()
		return
	}
	// online guards what needs the connection, which may have ended meanwhile.
	online := func(do func()) {
		if !r.wire.online() {
			then("", agent.ErrAway)
			return
		}
		do()
	}
	ok := r.run(func(context.Context) {
		sees := func(string) bool { return true }
		if by == ByEither {
			near, found := l.near()
			if !found {
				r.seq.do(func() { online(address) })
				return
			}
			sees = near.Sees
		}
		path, err := r.files.LocalCopy(f.Hash, f.Name)
		whole := err == nil && sees(path)
		r.seq.do(func() {
			switch {
			case whole:
				online(func() { then(path, nil) })
			case by == ByEither:
				r.log.Info("no file copy for the gateway, it fetches the file", "input", input, "err", err)
				online(address)
			case quota.Why(err) != "":
				r.log.Error("no space for a file copy for the gateway", "input", input, "err", err)
				then("", errNoSpace)
			default:
				r.log.Error("no file copy for the gateway", "input", input, "err", err)
				then("", errFileGone)
			}
		})
	})
	if !ok {
		then("", agent.ErrAway)
	}
}

// mediaKind returns the kind of a file that the gateway names.
func mediaKind(kind string) string {
	switch kind {
	case "image", "voice", "video", "document", "animation", "audio":
		return kind
	}
	return "document"
}
