package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"hermes-mobile/test/chaos/handset"
	"hermes-mobile/test/chaos/seam"
)

// process is an app in a process of its own (test/chaos/phone), which is killed and starts again from its FileStore. It says
// an event and then counts it as handled, so what was said last before its end may be said once more: an app that keeps what
// it shows knows that by the id.
type process struct {
	p        *phone
	setup    string
	seam     string // files
	errors   string
	controls *seam.Controls

	mu     sync.Mutex
	life   *life         // that takes orders; nil between two
	change chan struct{} // closed when life changes
	ended  bool
	orders int
	last   string // what was said last of what is durable
	left   int    // without receipt
	up     bool

	lives, again int
}

// life is one life of the process.
type life struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	line sync.Mutex          // of in: one writes
	done map[int]chan string // orders not obeyed yet; what is sent is the error
	over chan struct{}
}

var errOver = errors.New("the phone is gone")

func newProcess(p *phone, setup handset.Setup) (*process, error) {
	dir := p.w.t.TempDir()
	setup.Folder = filepath.Join(dir, "store")
	b, err := json.Marshal(setup)
	if err != nil {
		return nil, err
	}
	pr := &process{p: p, setup: string(b), seam: filepath.Join(dir, "seam"), errors: filepath.Join(dir, "errors"), change: make(chan struct{})}
	if pr.controls, err = seam.Open(pr.seam); err != nil {
		return nil, err
	}
	return pr, pr.start(nil)
}

// start begins a life. What it is to do again comes before other orders.
func (pr *process) start(again []*message) error {
	cmd := exec.Command(phoneBinary, pr.setup)
	cmd.Env = []string{seam.Variable + "=" + pr.seam, "GOTRACEBACK=all"}
	errs, err := os.OpenFile(pr.errors, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer errs.Close()
	cmd.Stderr = errs
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	dieWithParent(cmd.SysProcAttr)
	l := &life{cmd: cmd, in: in, done: map[int]chan string{}, over: make(chan struct{})}
	started := make(chan error, 1)
	pr.p.w.loops.Go(func() {
		runtime.LockOSThread() // the child dies with the thread that forked it
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			pr.listen(l, out)
			err = cmd.Wait()
			close(l.over)
			pr.mu.Lock()
			meant := pr.life != l
			pr.mu.Unlock()
			if !meant {
				pr.p.note(fmt.Sprintf("the phone's process ended by itself: %v", err))
			}
		}
	})
	if err := <-started; err != nil {
		return err
	}
	for _, m := range again {
		if err := pr.obey(l, fileOrder(m)); err != nil && !errors.Is(err, errOver) {
			pr.p.note("send a file again: " + err.Error())
		}
	}
	pr.mu.Lock()
	pr.lives++
	pr.lifeLocked(l)
	pr.mu.Unlock()
	return nil
}

func (pr *process) lifeLocked(l *life) {
	pr.life = l
	close(pr.change)
	pr.change = make(chan struct{})
}

// listen takes what a life says, to its end.
func (pr *process) listen(l *life, out io.Reader) {
	pr.mu.Lock()
	known := pr.last // may come once more
	pr.mu.Unlock()
	lines := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return // what was cut in its midst was not handled
		}
		var s handset.Said
		if err := json.Unmarshal(line, &s); err != nil {
			pr.p.note(fmt.Sprintf("the phone said %.80q: %v", line, err))
			continue
		}
		id := durable(s.Event)
		pr.mu.Lock()
		pr.left, pr.up = s.Pending, s.Online
		if c := l.done[s.Done]; c != nil {
			delete(l.done, s.Done)
			c <- s.Error
		}
		if id != "" && id == known {
			pr.again++
			s.Event, known = nil, ""
		}
		if id != "" {
			pr.last = id
		}
		pr.mu.Unlock()
		pr.p.hear(s.Event)
		pr.p.w.changed()
	}
}

// durable names an event that comes again when it was not handled.
func durable(ev *handset.Event) string {
	switch {
	case ev == nil:
	case ev.Message != nil:
		return "message " + ev.Message.ID
	case ev.File != nil:
		return "file " + ev.File.ID
	case ev.Done != nil:
		return "end of card " + ev.Done.ID
	case ev.Echo != nil:
		return "echo " + ev.Echo.From.ID + " " + ev.Echo.ID
	case ev.Shown != nil && !ev.Shown.Again:
		return "card " + ev.Shown.ID
	}
	return ""
}

// order gives an order until a life has obeyed it: an app that died before it knew that a message is in the store sends it
// again by the same id.
func (pr *process) order(o handset.Order) error {
	var gone *life
	for {
		pr.mu.Lock()
		l, change, ended := pr.life, pr.change, pr.ended
		pr.mu.Unlock()
		switch {
		case ended:
			return errOver
		case l == nil || l == gone:
			<-change
		default:
			if err := pr.obey(l, o); !errors.Is(err, errOver) {
				return err
			}
			gone = l
		}
	}
}

// obey gives one life an order and waits until it is obeyed. errOver: the life ended.
func (pr *process) obey(l *life, o handset.Order) error {
	done := make(chan string, 1)
	pr.mu.Lock()
	pr.orders++
	o.N = pr.orders
	l.done[o.N] = done
	pr.mu.Unlock()
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	l.line.Lock()
	_, err = l.in.Write(append(b, '\n'))
	l.line.Unlock()
	if err != nil {
		<-l.over
		return errOver
	}
	select {
	case text := <-done:
		if text != "" {
			return errors.New(text)
		}
		return nil
	case <-l.over:
		return errOver
	}
}

// kill ends the process with SIGKILL and starts it again. Files without receipt are sent again, as an app has to: unlike
// messages they are not in the store.
func (pr *process) kill() {
	pr.mu.Lock()
	l := pr.life
	if l == nil || pr.ended {
		pr.mu.Unlock()
		return
	}
	pr.lifeLocked(nil)
	pr.mu.Unlock()
	_ = l.cmd.Process.Kill()
	<-l.over
	var again []*message
	pr.p.mu.Lock()
	for _, m := range pr.p.sent {
		if m.sha != "" && m.receipt == nil {
			again = append(again, m)
		}
	}
	pr.p.mu.Unlock()
	if err := pr.start(again); err != nil {
		pr.p.note("start the phone again: " + err.Error())
	}
}

// stand stops the process, or lets it go on.
func (pr *process) stand(still bool) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if pr.life == nil {
		return
	}
	sig := syscall.SIGCONT
	if still {
		sig = syscall.SIGSTOP
	}
	_ = pr.life.cmd.Process.Signal(sig)
}

func (pr *process) send(m *message) error {
	return pr.order(handset.Order{Do: handset.Send, ID: m.id, Text: m.text})
}

func (pr *process) sendFile(m *message) error { return pr.order(fileOrder(m)) }

func fileOrder(m *message) handset.Order {
	return handset.Order{Do: handset.SendFile, ID: m.id, Text: m.text, Name: m.id + ".bin", Data: m.file()}
}

func (pr *process) answer(card, option string) error {
	return pr.order(handset.Order{Do: handset.Answer, ID: card, Text: option})
}

func (pr *process) reconnect() { _ = pr.order(handset.Order{Do: handset.Reconnect}) }

func (pr *process) pending() int {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	return pr.left
}

func (pr *process) online() bool {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	return pr.up
}

func (pr *process) close(ctx context.Context) {
	pr.mu.Lock()
	l := pr.life
	pr.ended = true
	pr.lifeLocked(nil)
	pr.mu.Unlock()
	if l == nil {
		return
	}
	_ = l.in.Close()
	select {
	case <-l.over:
	case <-ctx.Done():
		_ = l.cmd.Process.Kill()
		<-l.over
	}
	_ = pr.controls.Close()
	if b, err := os.ReadFile(pr.errors); err == nil && len(b) > 0 {
		pr.p.w.t.Errorf("%s said: %s", pr.p.id, b)
	}
}
