package config

import (
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strings"

	"hermes-mobile/internal/passhash"
	"hermes-mobile/internal/shellquote"
)

// mainLabel is the label that package access gives the first token of MOBILE_TOKEN if it has none.
const mainLabel = "main"

// checkTokens rejects a token or a label that occurs twice, in one list or in two. The label decides about
// binding and revoking, and the list about rights, so a duplicate would make both ambiguous.
func (l *loader) checkTokens() {
	tokens, labels := map[string]string{}, map[string]string{} // to the setting that contains it
	for _, name := range []string{"MOBILE_TOKEN", "MOBILE_EXTRA_TOKENS", "MOBILE_DELIVER_TOKENS", "MOBILE_METRICS_TOKEN", adminTokenName} {
		v, ok := l.get(name)
		if !ok {
			continue
		}
		if name == adminTokenName && strings.HasPrefix(v.text, passhash.Prefix) {
			continue // a hash does not reveal its token
		}
		for i, item := range split(v.text) {
			label, token := splitLabel(item)
			if id, secret, found := strings.Cut(item, "="); name == "MOBILE_EXTRA_TOKENS" && l.binds() && found && strings.Trim(secret, "=") != "" {
				label, token = strings.TrimPrefix(id, "device:"), secret
				if err := badToken(token); err != nil {
					l.bad(v, problemf(": token %d %s", i+1, err))
				}
			}
			if name == "MOBILE_TOKEN" && label == "" && i == 0 {
				label = mainLabel
			}
			if name == "MOBILE_METRICS_TOKEN" || name == adminTokenName {
				label, token = "", item
			}
			if token == "" {
				continue
			}
			if key, again := tokens[token]; again {
				l.bad(v, problemf(": token %d is also in %s: use a different token for each, made with: openssl rand -hex 32", i+1, key))
			} else if key, again := labels[label]; again && label != "" {
				l.bad(v, problemf(": label %d is also in %s: use a different label for each (MOBILE_TOKEN without a label has the label %q)", i+1, key, mainLabel))
			}
			tokens[token], labels[label] = v.key, v.key
		}
	}
}

// binds reports whether the names in MOBILE_EXTRA_TOKENS are device ids.
func (l *loader) binds() (yes bool) {
	v, _ := l.get("MOBILE_EXTRA_TOKENS_BIND")
	return setYesNo(&yes, v.text) == nil && yes
}

// decideAgent resolves "auto" and records why it selected the agent.
func (l *loader) decideAgent(c *Config) {
	v, set := l.get(agentName)
	if set && c.Agent != "auto" {
		c.AgentSet = true
		c.AgentWhy = fmt.Sprintf("%s, set by %s (%s)", c.Agent, v.key, v.where)
	} else if why := l.foundRelay(c); why != "" {
		c.Agent, c.AgentWhy = "relay", "relay, because "+why
	} else {
		c.Agent, c.AgentWhy = "demo", "demo, because there is no relay secret and no Hermes home"
		if c.HermesHome != "" {
			c.AgentWhy += " at " + l.short(c.HermesHome)
		}
	}
}

func (l *loader) foundRelay(c *Config) string {
	for _, name := range []string{relaySecret, hermesRelaySecret} {
		if v, ok := l.get(name); ok {
			return fmt.Sprintf("%s is set (%s)", v.key, v.where)
		}
	}
	if len(l.gateways) > 0 {
		return fmt.Sprintf("gateways are listed (%s)", l.gateways[0].where)
	}
	if c.HermesHomeExists {
		return fmt.Sprintf("a Hermes home exists at %s", l.short(c.HermesHome))
	}
	return ""
}

// checkProxyPath rejects a path for devices that the API proxy serves.
func (l *loader) checkProxyPath(c *Config) {
	if !c.FrontAPI {
		return
	}
	for _, p := range []string{"/auth", "/api", "/v1", "/health", "/login"} {
		if c.Path == p || strings.HasPrefix(c.Path, p+"/") {
			v, _ := l.get("MOBILE_PATH")
			l.bad(v, problemf("is a path of the API proxy (MOBILE_FRONT_API): use another, such as /ws"))
		}
	}
}

// checkExposure warns if tokens would cross a network unencrypted. A setting that names an https address
// or a proxy shows that the owner took care of it.
func (l *loader) checkExposure(c *Config) {
	if u, err := url.Parse(c.PublicURL); err == nil && u.Scheme == "http" && !loopback(u.Hostname()) {
		v, _ := l.get(publicName)
		l.warnPlain(v.key, v.where, "%s (%s) is plain http, so tokens and messages cross the network unencrypted: put a TLS proxy in front and set its https address",
			v.key, v.where)
		return
	}
	if c.TLS != "off" || c.Host == "" || loopback(c.Host) || strings.HasPrefix(c.PublicURL, "https:") {
		return
	}
	if _, set := l.get("MOBILE_TRUSTED_PROXIES"); set && c.TrustedProxies != "none" {
		return
	}
	v, _ := l.get("MOBILE_HOST")
	l.warnPlain(v.key, v.where, "%s: %q (%s) accepts unencrypted connections from other machines: set MOBILE_TLS=self, or put a TLS proxy in front and set MOBILE_PUBLIC_URL to its https address",
		v.key, c.Host, v.where)
}

// checkMode warns if other users of this machine can read a file with secrets.
func (l *loader) checkMode(file string) {
	if runtime.GOOS == "windows" {
		return // mode bits say nothing about who may read the file
	}
	fi, err := os.Stat(file)
	if err != nil || fi.Mode().Perm()&0o044 == 0 {
		return
	}
	shown := l.short(file)
	l.warn("", "in "+shown, "%s contains secrets and other users of this machine can read it: chmod 600 %s", shown, shellPath(shown, file))
	l.warnings[len(l.warnings)-1].File = file
}

// shellPath returns a path as one word of a shell command. A short form such as ~/.hermes/.env stays as it is
// where the shell still expands it; quotes would keep it from that.
func shellPath(short, full string) string {
	if rest, home := strings.CutPrefix(short, "~/"); home && shellquote.Word(rest) == rest {
		return short
	}
	return shellquote.Word(full)
}
