package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
)

// networkError is a request that failed below HTTP: the route may be at fault, not the request. Its
// text names no host.
type networkError struct{ cause error }

// Reasons to reject a route or a response.
var (
	errUnreadable  = errors.New("gateway: malformed response")
	errNotGateway  = errors.New("gateway: the server that answered is not a Hermes gateway; it may be the sign-in page of a network")
	errRedirect    = errors.New("gateway: the server answered with a redirect, which is not followed")
	errCertificate = errors.New("gateway: the certificate is not trusted or not valid")
	errPlain       = errors.New("gateway: plain http is allowed only on this machine and in private networks")
	errSecureOnly  = errors.New("gateway: the cookies of the login may be sent over https only")
	errNotStream   = errors.New("gateway: response is not an event stream")

	errMalformedAddress = errors.New("gateway: malformed address")
	errEventTooLarge    = fmt.Errorf("%w: event is larger than %d bytes", ErrTooLarge, maxEvent)
	errResponseTooLarge = fmt.Errorf("%w: response is larger than %d bytes", ErrTooLarge, maxAnswer)
)

func (e *networkError) Error() string {
	if cause := e.Unwrap(); cause != nil && !errors.As(cause, new(syscall.Errno)) {
		switch {
		case errors.Is(cause, context.Canceled):
			return "gateway: request canceled"
		case errors.Is(cause, context.DeadlineExceeded):
			return "gateway: no answer in time"
		case errors.Is(cause, io.ErrUnexpectedEOF), errors.Is(cause, io.EOF):
			return "gateway: connection lost"
		}
		return prefix + withoutPrefix(cause)
	}
	return ErrUnreachable.Error()
}

// Is reports whether target is ErrUnreachable. A request that was canceled here is not.
func (e *networkError) Is(target error) bool {
	return target == ErrUnreachable && !errors.Is(e.cause, context.Canceled)
}

// Unwrap returns the cause, unless its text contains a host, as the errors of net, net/url, tls and
// x509 do.
func (e *networkError) Unwrap() error {
	var timeout interface{ Timeout() bool }
	var errno syscall.Errno
	var unknown x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	var unverified *tls.CertificateVerificationError
	for _, known := range []error{
		ErrIdentity, ErrSignIn, ErrStreamBroken, errEventTooLarge, errResponseTooLarge, ErrTooLarge, ErrClosed, errUnreadable, errNotGateway, errRedirect, errPlain, errSecureOnly, context.Canceled,
	} {
		if errors.Is(e.cause, known) {
			return only(e.cause, known)
		}
	}
	switch {
	case errors.As(e.cause, &timeout) && timeout.Timeout():
		return context.DeadlineExceeded
	case errors.As(e.cause, &unknown), errors.As(e.cause, &hostname), errors.As(e.cause, &invalid), errors.As(e.cause, &unverified):
		return errCertificate
	case errors.Is(e.cause, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF
	case errors.Is(e.cause, io.EOF):
		return io.EOF
	case errors.As(e.cause, &errno):
		return errno
	case foreign(e.cause):
		return nil
	}
	return e.cause
}

// only returns known, or the identityError that wraps it: wrappers of net and net/http name the
// host.
func only(err, known error) error {
	var ours *identityError
	if errors.As(err, &ours) {
		return ours
	}
	return known
}

// foreign reports whether an error is of a type that prints addresses.
func foreign(err error) bool {
	var urlErr *url.Error
	var opErr *net.OpError
	var dnsErr *net.DNSError
	var addrErr *net.AddrError
	return errors.As(err, &urlErr) || errors.As(err, &opErr) || errors.As(err, &dnsErr) || errors.As(err, &addrErr)
}

// blamesRoute reports whether an error puts the route in doubt rather than the request, so that the
// next request should select a route. It does if there was no response, if the response was no API
// response, or if a proxy answered instead of the gateway.
func blamesRoute(err error) bool {
	var network *networkError
	var refused *Error
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &network), errors.Is(err, errUnreadable):
		return true
	case errors.As(err, &refused):
		switch refused.Status {
		case 401:
			return true
		case 502, 503, 504:
			return refused.Code == ""
		}
		return refused.Status/100 == 3
	}
	return false
}
