//go:build unix

package hermes

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a child in a process group of its own.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child has been waited for
	err  error         // of Wait; read it after done
}

// startProcess runs cmd. Its group ends with kill, and on Linux the child dies with this process too,
// so that a test binary that panics or times out leaves nothing behind.
func startProcess(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// "Parent" means the thread that forked, so that thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		// What the child left in its group; later the id may be somebody else's.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// stop asks the child to end and kills its group when it has not after grace.
func (p *process) stop(grace time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
	}
	p.kill()
}

// kill ends the whole group at once and waits for the child.
func (p *process) kill() {
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
	}
}

// sweepScript waits for the end of its input, which comes when the test closes it or is gone, however
// it went. Then it kills every process that has the line $1 in its environment, as commands of the
// agent's tools run in sessions of their own, and removes the folder $2.
const sweepScript = `
read -r _
tries=0
while [ $tries -lt 100 ]; do
	# Its status says nothing: some of these files cannot be read, or are gone by now.
	found=$(grep -lzxF -e "$1" /proc/[0-9]*/environ 2>/dev/null)
	[ "$found" ] || break
	for env in $found; do
		pid=${env#/proc/}
		kill -9 "${pid%/environ}" 2>/dev/null
	done
	sleep 0.05
	tries=$((tries + 1))
done
rm -rf -- "$2"
`

// startSweeper runs sweepScript. The function it returns sets it off and waits for it.
func startSweeper(marker, root string) (sweep func() error, err error) {
	cmd := exec.Command("/bin/sh", "-c", sweepScript, "sweep", marker, root)
	cmd.Dir = "/"
	// A group of its own, so that an interrupt from the terminal does not end it first.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the sweeper: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the sweeper: %w", err)
	}
	return func() error {
		closeQuietly(input)
		return cmd.Wait()
	}, nil
}

// openLog opens a file that a child appends its output to.
func openLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// closeQuietly closes the parent's copy of a file that a child has.
func closeQuietly(c io.Closer) { _ = c.Close() }
