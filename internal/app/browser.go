package app

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// errNoBrowser means that this system has no program to open a page with.
var errNoBrowser = errors.New("no browser found")

// openingTime is how long OpenBrowser waits for the opening program to report a failure.
const openingTime = 3 * time.Second

// OpenBrowser opens an address in the system's browser. After an error, the user must open it.
// Other users of this machine may see the address in the arguments of the opening program. So the
// address must work only once and for a short time.
func OpenBrowser(address string) error {
	var name string
	var args []string
	switch runtime.GOOS {
	case "darwin":
		name, args = "open", []string{address}
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return errNoBrowser
		}
		name, args = "xdg-open", []string{address}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return errNoBrowser
	}
	cmd := exec.Command(path, args...)
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return errNoBrowser
	}
	// The started program may be the browser itself, which outlives this one. So OpenBrowser waits
	// only for an early failure.
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	late := time.NewTimer(openingTime)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		return nil
	}
}
