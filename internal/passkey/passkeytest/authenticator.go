// Package passkeytest is an authenticator for tests: it makes passkeys and answers challenges as a browser with a security key
// does, and lies where a test wants it to.
package passkeytest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// Authenticator holds one passkey. Change its fields to lie.
type Authenticator struct {
	Origin   string // of the page that it is used on
	RPID     string // the site that it claims
	ID       []byte // of the credential
	User     []byte // handle of the user, from the options of the registration
	Count    uint32 // of signatures; it rises with each answer while Counting
	Counting bool
	Verified bool // its user was verified
	Present  bool
	Type     string // of the client data; empty: what fits

	key *ecdsa.PrivateKey
}

// New makes an authenticator for a page.
func New(origin, rpID string) *Authenticator {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // there is no randomness
	}
	a := &Authenticator{Origin: origin, RPID: rpID, ID: make([]byte, 32), Counting: true, Verified: true, Present: true, key: key}
	rand.Read(a.ID)
	return a
}

// options are the parts of a server's options that count.
type options struct {
	PublicKey struct {
		Challenge string `json:"challenge"`
		RPID      string `json:"rpId"`
		RP        struct {
			ID string `json:"id"`
		} `json:"rp"`
		User struct {
			ID string `json:"id"`
		} `json:"user"`
		UserVerification       string            `json:"userVerification"`
		AllowCredentials       []json.RawMessage `json:"allowCredentials"`
		AuthenticatorSelection struct {
			UserVerification string `json:"userVerification"`
			ResidentKey      string `json:"residentKey"`
		} `json:"authenticatorSelection"`
	} `json:"publicKey"`
}

// Register makes the passkey for the options of a server, and returns what the browser sends.
func (a *Authenticator) Register(optionsJSON []byte) ([]byte, error) {
	var o options
	if err := json.Unmarshal(optionsJSON, &o); err != nil {
		return nil, err
	}
	if s := o.PublicKey.AuthenticatorSelection; s.UserVerification != "required" || s.ResidentKey != "required" {
		return nil, fmt.Errorf("the server does not require verification and a discoverable key: %+v", s)
	}
	var err error
	if a.User, err = base64.RawURLEncoding.DecodeString(o.PublicKey.User.ID); err != nil {
		return nil, err
	}
	public, err := a.key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		return nil, err
	}
	var cose bytes.Buffer
	cose.Write([]byte{0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21})
	writeBytes(&cose, public[1:33])
	cose.WriteByte(0x22)
	writeBytes(&cose, public[33:65])
	data := a.data(true)
	data = append(data, make([]byte, 16)...) // AAGUID
	data = binary.BigEndian.AppendUint16(data, uint16(len(a.ID)))
	data = append(append(data, a.ID...), cose.Bytes()...)
	var object bytes.Buffer
	object.WriteByte(0xa3)
	writeText(&object, "fmt")
	writeText(&object, "none")
	writeText(&object, "attStmt")
	object.WriteByte(0xa0)
	writeText(&object, "authData")
	writeBytes(&object, data)
	return a.send(map[string]any{"clientDataJSON": a.clientData("webauthn.create", o.PublicKey.Challenge), "attestationObject": object.Bytes()})
}

// Answer answers the options of a login, and returns what the browser sends.
func (a *Authenticator) Answer(optionsJSON []byte) ([]byte, error) {
	var o options
	if err := json.Unmarshal(optionsJSON, &o); err != nil {
		return nil, err
	}
	if o.PublicKey.UserVerification != "required" || len(o.PublicKey.AllowCredentials) > 0 {
		return nil, fmt.Errorf("the server does not require verification, or tells which passkeys there are: %s", optionsJSON)
	}
	if a.Counting {
		a.Count++
	}
	client, data := a.clientData("webauthn.get", o.PublicKey.Challenge), a.data(false)
	sum := sha256.Sum256(client)
	digest := sha256.Sum256(append(bytes.Clone(data), sum[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, a.key, digest[:])
	if err != nil {
		return nil, err
	}
	return a.send(map[string]any{"clientDataJSON": client, "authenticatorData": data, "signature": signature, "userHandle": a.User})
}

func (a *Authenticator) clientData(kind, challenge string) []byte {
	if a.Type != "" {
		kind = a.Type
	}
	b, _ := json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": a.Origin, "crossOrigin": false}) // strings only
	return b
}

func (a *Authenticator) data(attested bool) []byte {
	var flags byte
	for bit, set := range map[byte]bool{0x01: a.Present, 0x04: a.Verified, 0x40: attested} {
		if set {
			flags |= bit
		}
	}
	site := sha256.Sum256([]byte(a.RPID))
	return binary.BigEndian.AppendUint32(append(site[:], flags), a.Count)
}

// send writes bytes as browsers do, in base64url.
func (a *Authenticator) send(response map[string]any) ([]byte, error) {
	encoded := map[string]string{}
	for name, v := range response {
		encoded[name] = base64.RawURLEncoding.EncodeToString(v.([]byte))
	}
	id := base64.RawURLEncoding.EncodeToString(a.ID)
	return json.Marshal(map[string]any{"id": id, "rawId": id, "type": "public-key", "response": encoded, "clientExtensionResults": map[string]any{}})
}

func writeBytes(b *bytes.Buffer, v []byte) {
	if len(v) < 256 {
		b.Write([]byte{0x58, byte(len(v))})
	} else {
		b.Write([]byte{0x59, byte(len(v) >> 8), byte(len(v))})
	}
	b.Write(v)
}

func writeText(b *bytes.Buffer, s string) {
	b.WriteByte(0x60 | byte(len(s)))
	b.WriteString(s)
}
