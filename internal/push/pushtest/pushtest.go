// Package pushtest is a push service for tests: it takes notifications on this machine and decrypts them.
package pushtest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
)

// Host is the host of every service, for MOBILE_PUSH_HOSTS.
const Host = "127.0.0.1"

// Service is a running push service.
type Service struct {
	Got chan Notification // everything that came, also what was answered with an error

	server *httptest.Server
	mu     sync.Mutex
	subs   map[string]*Subscription
	answer func(Notification, http.ResponseWriter)
}

// Subscription is an endpoint with the keys of its device.
type Subscription struct {
	Endpoint, P256dh, Auth string
	Private                string // the half of P256dh that only the device has

	private *ecdh.PrivateKey
	auth    []byte
}

// Notification is what came for one endpoint.
type Notification struct {
	Path      string
	Header    http.Header
	Raw       []byte // as it came
	Encrypted bool
	Body      string // decrypted where it was encrypted
	Err       error  // why it could not be
}

// New starts a service; Close it.
func New() *Service {
	s := &Service{Got: make(chan Notification, 1024), subs: map[string]*Subscription{}}
	s.server = httptest.NewServer(http.HandlerFunc(s.take))
	return s
}

// Close ends the service.
func (s *Service) Close() { s.server.Close() }

// Answer has f answer what comes; without it everything is created.
func (s *Service) Answer(f func(Notification, http.ResponseWriter)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// Subscribe makes an endpoint with keys.
func (s *Service) Subscribe() *Subscription {
	private, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	auth := make([]byte, 16)
	rand.Read(auth)
	s.mu.Lock()
	defer s.mu.Unlock()
	path := fmt.Sprintf("/endpoint/%d", len(s.subs)+1)
	sub := &Subscription{Endpoint: s.server.URL + path, P256dh: encode(private.PublicKey().Bytes()), Auth: encode(auth), Private: encode(private.Bytes()), private: private, auth: auth}
	s.subs[path] = sub
	return sub
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (s *Service) take(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body ended early", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	sub, answer := s.subs[r.URL.Path], s.answer
	s.mu.Unlock()
	n := Notification{Path: r.URL.Path, Header: r.Header, Raw: raw, Body: string(raw), Encrypted: r.Header.Get("Content-Encoding") == "aes128gcm"}
	if n.Encrypted && sub != nil {
		n.Body, n.Err = sub.open(raw)
	}
	if answer != nil {
		answer(n, w)
	} else {
		w.WriteHeader(http.StatusCreated)
	}
	s.Got <- n
}

// open decrypts one record (RFC 8188 and 8291).
func (s *Subscription) open(raw []byte) (string, error) {
	const head = 16 + 4 + 1 + 65
	if len(raw) < head || raw[20] != 65 || binary.BigEndian.Uint32(raw[16:]) < uint32(len(raw)-head) {
		return "", errors.New("the header of the record is bad")
	}
	sender, err := ecdh.P256().NewPublicKey(raw[21:head])
	if err != nil {
		return "", err
	}
	shared, err := s.private.ECDH(sender)
	if err != nil {
		return "", err
	}
	info := "WebPush: info\x00" + string(s.private.PublicKey().Bytes()) + string(sender.Bytes())
	ikm, err1 := hkdf.Key(sha256.New, shared, s.auth, info, 32)
	key, err2 := hkdf.Key(sha256.New, ikm, raw[:16], "Content-Encoding: aes128gcm\x00", 16)
	nonce, err3 := hkdf.Key(sha256.New, ikm, raw[:16], "Content-Encoding: nonce\x00", 12)
	if err := errors.Join(err1, err2, err3); err != nil {
		return "", err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return "", err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return "", err
	}
	plain, err := gcm.Open(nil, nonce, raw[head:], nil)
	if err != nil {
		return "", err
	}
	for i := len(plain) - 1; i >= 0; i-- { // padding, before it the mark of the last record
		if plain[i] == 2 {
			return string(plain[:i]), nil
		}
		if plain[i] != 0 {
			break
		}
	}
	return "", errors.New("the record has no end")
}
