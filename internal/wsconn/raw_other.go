//go:build !unix

package wsconn

import (
	"errors"
	"net"
	"syscall"
)

// rawConn returns nil: this system has no direct reads and writes of a socket's handle, so the
// connection is a plain stream.
func rawConn(net.Conn) syscall.RawConn { return nil }

func rawRead(uintptr, []byte) (n int, again bool, err error) {
	return 0, false, errors.ErrUnsupported
}

func rawWrite(uintptr, []byte) (n int, again bool, err error) {
	return 0, false, errors.ErrUnsupported
}
