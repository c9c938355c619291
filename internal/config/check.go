package config

import (
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"hermes-mobile/frame"
)

// minSecret is the minimum length of a token or secret in characters. A shorter one can be guessed, and
// is usually a placeholder.
const minSecret = 16

// maxToken is the longest token that package access accepts.
const maxToken = 512

var (
	hostName  = regexp.MustCompile(`^(?i)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?$`)
	allDigit  = regexp.MustCompile(`(^|\.)[0-9]+\.?$`) // a mistyped address, not a name
	urlPath   = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)+$`)
	labelForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
)

func setHost(to *string, v string) error {
	bare := v
	if strings.HasPrefix(v, "[") && strings.HasSuffix(v, "]") {
		bare = v[1 : len(v)-1]
	}
	if _, err := netip.ParseAddr(bare); err != nil {
		if bare != v || len(v) > 253 || !hostName.MatchString(v) || allDigit.MatchString(v) {
			return problemf("is not an address: use an IP address or a host name without a port, or 0.0.0.0 for every interface")
		}
	}
	*to = bare
	return nil
}

// loopback reports whether a checked host is a loopback address.
func loopback(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().IsLoopback()
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

func setPort(to *int, v string) error {
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil || n < 0 || n > 65535 {
		return problemf("is not a port: use a number from 1 to 65535, or 0 for any free port")
	}
	*to = int(n)
	return nil
}

// taken lists the paths that the server itself uses.
var taken = []string{"/relay", "/media", "/push", "/healthz", "/readyz", "/metrics", "/admin", "/avatar", "/assets", "/sw.js", "/manifest.webmanifest", "/icon.svg", "/icon-180.png", "/icon-192.png",
	"/icon-512.png", "/icon-maskable-512.png"}

func setPath(to *string, v string) error {
	const fix = `start with "/" and use letters, digits, ".", "_", "~", and "-", such as /ws`
	if v == "/" {
		return problemf("is the path of the web page: use another, such as /ws")
	}
	if !urlPath.MatchString(v) {
		return problemf("is not a path: %s", fix)
	}
	for part := range strings.SplitSeq(v, "/") {
		if part == "." || part == ".." {
			return problemf("is not a path: %s", fix)
		}
	}
	for _, t := range taken {
		if v == t || strings.HasPrefix(v, t+"/") {
			return problemf("conflicts with the server's own path %s: use another, such as /ws", t)
		}
	}
	*to = v
	return nil
}

func setNumber[T int | int64](to *T, v string, least, most int64) error {
	n, err := strconv.ParseInt(v, 10, 64)
	switch {
	case err != nil && !strings.Contains(err.Error(), "out of range"):
		return problemf("is not a whole number: use one from %d to %d", least, most)
	case err != nil || n < least || n > most:
		return problemf("is out of range: use a whole number from %d to %d", least, most)
	}
	*to = T(n)
	return nil
}

func setYesNo(to *bool, v string) error {
	switch strings.ToLower(v) {
	case "1", "true", "yes", "on":
		*to = true
	case "0", "false", "no", "off":
		*to = false
	default:
		return problemf("is neither yes nor no: use yes or no")
	}
	return nil
}

func setAPIJobs(to *string, v string) error {
	var on bool
	if err := setYesNo(&on, v); err != nil {
		return err
	}
	*to = "off"
	if on {
		*to = "on"
	}
	return nil
}

func setChoice(to *string, v string, choices []string) error {
	for _, c := range choices {
		if strings.EqualFold(v, c) {
			*to = c
			return nil
		}
	}
	return problemf("is not valid: use %s", orList(choices))
}

func setAgent(to *string, v string) error {
	switch v = strings.ToLower(v); v {
	case "auto", "relay", "direct", "demo":
		*to = v
		return nil
	}
	return problemf("is not an agent: use %s", orList(agents))
}

// split splits a comma-separated list, trims the items, and drops empty ones.
func split(v string) []string {
	var items []string
	for item := range strings.SplitSeq(v, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// errCommas rejects a list that is set but has no items. As an empty list, it could turn off a filter that
// the owner wants.
var errCommas = problemf("has no items: add some or remove the setting")

func setIDs(to *[]string, v, what string) error {
	items := split(v)
	if items == nil {
		return errCommas
	}
	for _, id := range items {
		if !frame.ValidID(id) {
			return problemf("is not a list of %s: %q is invalid, use 1 to %d of A-Z a-z 0-9 . _ - : @, separated by commas", what, shorten(id), frame.MaxID)
		}
	}
	*to = items
	return nil
}

func setUsers(to *[]string, v string) error {
	for _, id := range split(v) {
		if id == "*" {
			return problemf("can't contain *: to approve all users, set MOBILE_ALLOW_ALL_USERS=yes instead")
		}
	}
	return setIDs(to, v, "user ids")
}

func setOrigins(to *[]string, v string) error {
	items := split(v)
	if items == nil {
		return errCommas
	}
	for i, o := range items {
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" ||
			u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(u.Host, "*") {
			return problemf("is not a list of origins: %q is invalid, use the form https://app.example.com", shorten(o))
		}
		items[i] = strings.ToLower(u.Scheme + "://" + u.Host) // as browsers send it
	}
	*to = items
	return nil
}

func setProxies(to *string, v string) error {
	if strings.EqualFold(v, "none") {
		*to = "none"
		return nil
	}
	items := split(v)
	if items == nil {
		return errCommas
	}
	for _, p := range items {
		_, errAddr := netip.ParseAddr(p)
		_, errPrefix := netip.ParsePrefix(p)
		if errAddr != nil && errPrefix != nil {
			return problemf("is not a list of proxies: %q is neither an address nor a prefix, use 10.0.0.5, 10.0.0.0/8, or none", shorten(p))
		}
	}
	*to = strings.Join(items, ",")
	return nil
}

// webURL parses an absolute http or https URL.
func webURL(v, example string) (*url.URL, error) {
	u, err := url.Parse(v)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return nil, &problem{text: "is not an http or https URL: use the form " + example, hide: strings.Contains(v, "@")}
	}
	if u.User != nil {
		return nil, &problem{text: "contains a user name: use the form " + example, hide: true}
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return nil, problemf("has an invalid port: use the form %s", example)
		}
	}
	return u, nil
}

func setPublicURL(to *string, v string) error {
	const example = "https://agent.example.com"
	u, err := webURL(v, example)
	if err != nil {
		return err
	}
	if u.RawQuery != "" || u.ForceQuery || strings.Contains(v, "#") {
		return problemf(`contains "?" or "#": use the form %s`, example)
	}
	*to = strings.TrimRight(u.String(), "/")
	return nil
}

// setDirectory sets the address of an ACME server. It must be https, because the security of the
// certificate depends on it.
func setDirectory(to *string, v string) error {
	const example = "https://acme-v02.api.letsencrypt.org/directory"
	u, err := webURL(v, example)
	if err != nil {
		return err
	}
	if u.Scheme != "https" {
		return problemf("is not https: use the form %s", example)
	}
	*to = u.String()
	return nil
}

func setEmail(to *string, v string) error {
	a, err := mail.ParseAddress(v)
	if err != nil || a.Name != "" || a.Address != v {
		return problemf("is not an email address: use the form me@example.com")
	}
	*to = v
	return nil
}

func setAvatarURL(to *string, v string) error {
	u, err := webURL(v, "https://agent.example.com/avatar.html")
	if err != nil {
		return err
	}
	*to = u.String()
	return nil
}

// setWakeURL sets an address whose query may be a secret, so no error quotes it.
func setWakeURL(to *Secret, v string) error {
	const example = "https://host.example.com/start?key=…"
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" || strings.ContainsFunc(v, unicode.IsControl) {
		return problemf("is not a web address without user and fragment: use the form %s", example)
	}
	*to = Secret(v)
	return nil
}

// newSecret is the fix for every invalid secret.
const newSecret = "create a new one with: openssl rand -hex 32"

// badSecret checks the secret of a gateway.
func badSecret(v string) error {
	switch {
	case !utf8.ValidString(v) || strings.ContainsFunc(v, unicode.IsControl):
		return problemf("contains a control character or is not UTF-8: %s", newSecret)
	case strings.ContainsFunc(v, unicode.IsSpace):
		return problemf("contains a space: %s", newSecret)
	case utf8.RuneCountInString(v) < minSecret:
		return problemf("is shorter than %d characters: %s", minSecret, newSecret)
	}
	return nil
}

// badToken checks one token. It is stricter than badSecret, because other software types, scans, and
// sends tokens.
func badToken(v string) error {
	if err := badSecret(v); err != nil {
		return err
	}
	if strings.ContainsFunc(v, func(r rune) bool { return r > '~' }) {
		return problemf("contains a character that is not ASCII: %s", newSecret)
	}
	if len(v) > maxToken {
		return problemf("is longer than %d characters: %s", maxToken, newSecret)
	}
	return nil
}

func setToken(to *Secret, v string) error {
	if err := badToken(v); err != nil {
		return err
	}
	*to = Secret(v)
	return nil
}

// setTokens checks a list of token or label=token and stores it without empty items.
func setTokens(to *Secret, v string) error {
	items := split(v)
	if items == nil {
		return errCommas
	}
	for i, item := range items {
		_, token := splitLabel(item)
		if err := badToken(token); err != nil {
			if len(items) > 1 {
				return problemf(": token %d %s", i+1, err)
			}
			return err
		}
	}
	*to = Secret(strings.Join(items, ","))
	return nil
}

// splitLabel splits one item of a token list, by the same rule as package access, which uses the lists.
// Only text with the form of a label is a label, and "=" at the end belongs to a Base64 token.
func splitLabel(item string) (label, token string) {
	label, token, found := strings.Cut(item, "=")
	if id, bound := strings.CutPrefix(label, "device:"); found && bound && strings.Trim(token, "=") != "" {
		return id, token
	}
	if !found || !labelForm.MatchString(label) || strings.Trim(token, "=") == "" {
		return "", item
	}
	return label, token
}
