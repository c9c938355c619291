package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// page has web/test/bench.ts measure the web page in a browser, with a server of the same program. It is left out where
// something for that is missing.
func page(ctx context.Context, s *suite) error {
	if out, err := exec.CommandContext(ctx, "bash", "-c", "bash test/web/node.sh && bash test/web/packages.sh && bash test/web/install.sh").CombinedOutput(); err != nil {
		fmt.Println("  left out:", strings.TrimSpace(string(out)))
		return nil
	}
	cmd := exec.CommandContext(ctx, "node", "test/bundled.mjs", "bench")
	cmd.Dir, cmd.Stderr = "web", os.Stderr
	cmd.Env = append(os.Environ(), "HERMES_MOBILE_BIN="+s.bin, "BENCH_REPEAT="+strconv.Itoa(s.repeat), "TMPDIR="+s.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with its browser
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the browser's part: %w", err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if f := strings.Split(lines.Text(), "\t"); len(f) == 4 && f[0] == "" {
			s.add("page", f[1], f[2], f[3])
		} else {
			fmt.Println(lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("measure the page: %w", err)
	}
	return lines.Err()
}
