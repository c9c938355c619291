package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"

	"hermes-mobile/frame"
)

// maxGatewayID limits an id to a length that fits a log line and a bearer token.
const maxGatewayID = 256

// gatewayEntry is a gateway with the place it came from.
type gatewayEntry struct {
	Gateway
	key   string // such as "gateways[0]"
	where string
}

// gatewayKeys are the keys of one entry of "gateways".
var gatewayKeys = []string{"id", "secret", "name", "devices", "local", "public_url", "wake_url", "profiles"}

// readGateways reads the list "gateways" of the yaml file.
func (y *yamlReader) readGateways(n ast.Node) {
	if n.Type() == ast.NullType {
		return
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		y.wrong(n, `gateways: expected a list: start each gateway with "- id:"`)
		return
	}
	for i, item := range seq.Values {
		key := fmt.Sprintf("gateways[%d]", i)
		entries, ok := pairs(item)
		if !ok {
			y.wrong(item, "%s: expected a gateway with id and secret", key)
			continue
		}
		before := len(y.errs)
		g := gatewayEntry{key: key, where: y.where(item)}
		for _, e := range entries {
			y.gatewaySetting(&g, e)
		}
		// An invalid part was reported already.
		if len(y.errs) == before && g.ID == "" {
			y.bad(value{key: key + ".id", where: g.where}, problemf("is missing: set it to the GATEWAY_RELAY_ID of the gateway"))
		}
		if len(y.errs) == before && g.Secret == "" {
			y.bad(value{key: key + ".secret", where: g.where}, problemf("is missing: create one with: openssl rand -hex 32"))
		}
		if len(y.errs) == before {
			y.addGateway(g)
		}
	}
}

func (y *yamlReader) gatewaySetting(g *gatewayEntry, e *ast.MappingValueNode) {
	name := e.Key.GetToken().Value
	key, where := g.key+"."+name, y.where(e.Key)
	if !slices.Contains(gatewayKeys, name) {
		y.unknown(g.key+"."+quoteOdd(name), where, name, gatewayKeys, "")
		return
	}
	text, ok := y.text(key, e.Value)
	text = strings.TrimSpace(text)
	if !ok || text == "" {
		return
	}
	var err error
	switch name {
	case "id":
		g.ID, err = text, badGatewayID(text)
	case "secret":
		y.secrets = true
		g.Secret, err = Secret(text), badSecret(text)
	case "name":
		if g.Name = text; strings.ContainsFunc(text, unicode.IsControl) {
			err = problemf("contains a control character: remove it")
		}
	case "devices":
		err = setDevices(&g.Devices, text)
	case "local":
		err = setMaybe(&g.Local, text)
	case "public_url":
		err = setPublicURL(&g.PublicURL, text)
	case "wake_url":
		y.secrets = true
		err = setWakeURL(&g.WakeURL, text)
	case "profiles":
		err = setProfiles(&g.Profiles, text)
	}
	if err != nil {
		y.bad(value{text: text, key: key, where: where, hide: name == "secret" || name == "wake_url"}, err)
	}
}

func badGatewayID(v string) error {
	switch {
	case !utf8.ValidString(v) || strings.ContainsFunc(v, unicode.IsControl):
		return problemf("contains a control character or is not UTF-8: use another id, such as gw-home")
	case len(v) > maxGatewayID:
		return problemf("is longer than %d bytes: use a shorter id, such as gw-home", maxGatewayID)
	}
	return nil
}

func setDevices(to *[]string, v string) error {
	items := split(v)
	if items == nil {
		return errCommas
	}
	for _, d := range items {
		if d != "*" && !frame.ValidID(strings.TrimPrefix(d, "user:")) {
			return problemf(`is not a list of devices: %q is invalid, use device ids, "user:<id>", or "*"`, shorten(d))
		}
	}
	*to = items
	return nil
}

// profileName matches the names that Hermes accepts for profiles.
var profileName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

func setProfiles(to *[]string, v string) error {
	items := split(v)
	if items == nil {
		return errCommas
	}
	for _, name := range items {
		if !profileName.MatchString(name) {
			return problemf(`is not a list of profiles: %q is not a profile name, see "hermes profile list"`, shorten(name))
		}
	}
	*to = items
	return nil
}

func setMaybe(to **bool, v string) error {
	b := new(bool)
	if err := setYesNo(b, v); err != nil {
		return err
	}
	*to = b
	return nil
}

// addGateway adds a gateway from the yaml file, unless it conflicts with an earlier one: each device must
// have one gateway, and each id one secret.
func (l *loader) addGateway(g gatewayEntry) {
	for _, other := range l.gateways {
		if other.ID == g.ID {
			l.bad(value{text: g.ID, key: g.key + ".id", where: g.where}, problemf("is also the id of %s: use a different id for each gateway", other.key))
			return
		}
		for _, d := range g.Devices {
			if slices.Contains(other.Devices, d) {
				l.bad(value{text: d, key: g.key + ".devices", where: g.where}, problemf("is also a device of %s: list it at one gateway only", other.key))
				return
			}
		}
	}
	l.gateways = append(l.gateways, g)
}

// assembleGateways combines the gateways of the yaml file with the one that a pair of settings describes.
func (l *loader) assembleGateways(c *Config) {
	l.pairedGateway()
	for i, g := range l.gateways {
		if len(g.Devices) == 0 && g.key != "" {
			if len(l.gateways) > 1 {
				l.bad(value{key: g.key + ".devices", where: g.where},
					problemf(`is missing: with more than one gateway, list the devices of each: device ids, "user:<id>", or "*"`))
				continue
			}
			g.Devices = []string{"*"}
			l.gateways[i] = g
		}
		c.Gateways = append(c.Gateways, g.Gateway)
	}
}

// pairedGateway adds the gateway of MOBILE_RELAY_ID and MOBILE_RELAY_SECRET, or of GATEWAY_RELAY_ID and
// GATEWAY_RELAY_SECRET.
func (l *loader) pairedGateway() {
	id, secret, ok := l.relayPair()
	if !ok {
		return
	}
	before := len(l.errs)
	if err := badGatewayID(id.text); err != nil {
		l.bad(id, err)
	}
	if err := badSecret(secret.text); err != nil {
		l.bad(secret, err)
	}
	if len(l.errs) > before {
		return
	}
	everybody := ""
	for i, g := range l.gateways {
		if g.ID == id.text {
			switch {
			case g.Secret == Secret(secret.text):
			case secret.place > inYAML:
				l.gateways[i].Secret = Secret(secret.text)
			default:
				l.warn(secret.key, secret.where, "%s (%s) differs from the secret of %s (%s), which takes precedence: use the same secret, or the server rejects the gateway",
					secret.key, secret.where, g.key, g.where)
			}
			return
		}
		if slices.Contains(g.Devices, "*") {
			everybody = g.key
		}
	}
	g := gatewayEntry{Gateway: Gateway{ID: id.text, Secret: Secret(secret.text)}, where: id.where}
	if everybody == "" {
		g.Devices = []string{"*"}
	} else {
		l.warn(id.key, id.where, "gateway %q of %s (%s) has no devices, because %s has all of them: list it under gateways, with its devices",
			id.text, id.key, id.where, everybody)
	}
	l.gateways = append(l.gateways, g)
}

// relayPair returns the effective pair. Half a pair is an error: without a secret, any process could pose
// as the gateway.
func (l *loader) relayPair() (id, secret value, ok bool) {
	for _, pair := range [][2]string{{relayID, relaySecret}, {hermesRelayID, hermesRelaySecret}} {
		id, okID := l.get(pair[0])
		secret, okSecret := l.get(pair[1])
		switch {
		case okID && okSecret:
			return id, secret, true
		case okID:
			l.bad(id, problemf(": %s is not set: set both or neither", pair[1]))
			return id, secret, false
		case okSecret:
			l.bad(secret, problemf(": %s is not set: set both or neither", pair[0]))
			return id, secret, false
		}
	}
	return id, secret, false
}
