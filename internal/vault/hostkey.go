package vault

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"hermes-mobile/gateway"
)

// KeyFrom reads the key that a host program passes on a file descriptor: its first line. It closes
// the descriptor, so no program that is started later has it. A key on the command line or in the
// environment would be readable by others.
func KeyFrom(fd int) (gateway.Secret, error) {
	if fd < 0 || fd == 1 || fd == 2 {
		return gateway.Secret{}, errors.New("invalid descriptor for the key: use 0, or 3 and higher")
	}
	f := os.NewFile(uintptr(fd), "key")
	if f == nil {
		return gateway.Secret{}, fmt.Errorf("descriptor %d is not open: the host program must pass it", fd)
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, 4096)).ReadString('\n')
	line = strings.TrimSpace(line)
	switch {
	case line == "" && err != nil && !errors.Is(err, io.EOF):
		return gateway.Secret{}, fmt.Errorf("descriptor %d has no key: %w", fd, err)
	case line == "":
		return gateway.Secret{}, fmt.Errorf("descriptor %d has no key", fd)
	}
	return gateway.NewSecret(line), nil
}
