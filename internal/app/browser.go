package app

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// errNoBrowser: there is nothing here that could open a page.
var errNoBrowser = errors.New("there is no browser to open")

// openingTime is how long a program that opens pages may take to say that it cannot.
const openingTime = 3 * time.Second

// OpenBrowser has the system open an address. An error means that the person has to do it. The address is in the arguments of the
// program that opens it, where others may see it for a moment: so it is good once and for a short time.
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
	// What was started may be the browser itself, which outlives this program: it is not waited for longer than to hear that it failed.
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
