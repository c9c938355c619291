//go:build !unix

package wsconn

import (
	"errors"
	"net"
	"syscall"
)

// rawConn is nil where reading and writing a socket's handle directly is not
// the system's way: the connection is used as a plain stream.
func rawConn(net.Conn) syscall.RawConn { return nil }

func rawRead(uintptr, []byte) (n int, again bool, err error) {
	return 0, false, errors.ErrUnsupported
}

func rawWrite(uintptr, []byte) (n int, again bool, err error) {
	return 0, false, errors.ErrUnsupported
}
