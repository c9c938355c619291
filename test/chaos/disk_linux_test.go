package chaos

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

const ownMounts = "HERMES_MOBILE_CHAOS_MOUNTS"

// withOwnMounts runs the tests once more in a process that has mounts of its own, where that is allowed: a small disk can
// then be made, and is gone with the process however that ends.
func withOwnMounts() (status int, ran bool) {
	if os.Getenv(ownMounts) != "" {
		return 0, false
	}
	// The child dies with the thread that forked it, so that thread must live as long.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), ownMounts+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	if err := cmd.Start(); err != nil {
		return 0, false // not allowed here: then no disk gets full
	}
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), true
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// roomy is the size of a disk that is not full.
const roomy = 2 << 30

// mountDisk makes a folder a disk of its own in memory, and reports whether it could.
func mountDisk(dir string) bool {
	if os.Getenv(ownMounts) == "" || syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "") != nil {
		return false
	}
	return syscall.Mount("chaos", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", roomy)) == nil
}

func unmountDisk(dir string) { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }

// fillDisk takes the room away that is left on a disk but for some bytes. While somebody writes that may need several tries.
func fillDisk(dir string, left int64) error {
	var err error
	for range 100 {
		var s syscall.Statfs_t
		if err = syscall.Statfs(dir, &s); err != nil {
			return err
		}
		used := int64(s.Blocks-s.Bfree) * int64(s.Bsize)
		if err = resize(dir, used+left); err == nil {
			return nil
		}
	}
	return err
}

func freeDisk(dir string) error { return resize(dir, roomy) }

func resize(dir string, size int64) error {
	return syscall.Mount("chaos", dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("size=%d", size))
}

// handles is how many files and sockets a process has open.
func handles(pid int) (int, bool) {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(list), err == nil
}
