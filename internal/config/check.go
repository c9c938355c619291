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
)

// minSecret is the least length of a token or secret in characters: below it,
// guessing becomes thinkable, and it is a placeholder more often than not.
const minSecret = 16

// maxToken is what the package access takes at most.
const maxToken = 512

var (
	hostName = regexp.MustCompile(`^(?i)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?$`)
	allDigit = regexp.MustCompile(`(^|\.)[0-9]+\.?$`) // an address that went wrong, not a name
	urlPath  = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)+$`)
	// idForm is the form of device.id and user.id in the protocol.
	idForm    = regexp.MustCompile(`^[A-Za-z0-9._:@-]{1,128}$`)
	labelForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
)

func setHost(to *string, v string) error {
	bare := v
	if strings.HasPrefix(v, "[") && strings.HasSuffix(v, "]") {
		bare = v[1 : len(v)-1]
	}
	if _, err := netip.ParseAddr(bare); err != nil {
		if bare != v || len(v) > 253 || !hostName.MatchString(v) || allDigit.MatchString(v) {
			return problemf("is not an address: give an IP address or a host name without a port, 0.0.0.0 for every interface")
		}
	}
	*to = bare
	return nil
}

// loopback reports whether a checked host can be reached from this machine only.
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
		return problemf("is not a port: give a whole number from 1 to 65535, or 0 for any free one")
	}
	*to = int(n)
	return nil
}

// taken are the paths that the server uses itself.
var taken = []string{"/relay", "/media", "/push", "/healthz", "/readyz", "/metrics", "/admin", "/avatar", "/assets", "/sw.js", "/manifest.webmanifest", "/icon.svg", "/icon-180.png", "/icon-192.png",
	"/icon-512.png", "/icon-maskable-512.png"}

func setPath(to *string, v string) error {
	const remedy = `start it with "/" and use letters, digits, ".", "_", "~", "-", such as /ws`
	if v == "/" {
		return problemf("is where the web page is: choose another, such as /ws")
	}
	if !urlPath.MatchString(v) {
		return problemf("is not a path: %s", remedy)
	}
	for part := range strings.SplitSeq(v, "/") {
		if part == "." || part == ".." {
			return problemf("is not a path: %s", remedy)
		}
	}
	for _, t := range taken {
		if v == t || strings.HasPrefix(v, t+"/") {
			return problemf("collides with %s of the server itself: choose another, such as /ws", t)
		}
	}
	*to = v
	return nil
}

func setNumber[T int | int64](to *T, v string, least, most int64) error {
	n, err := strconv.ParseInt(v, 10, 64)
	switch {
	case err != nil && !strings.Contains(err.Error(), "out of range"):
		return problemf("is not a whole number: give one from %d to %d", least, most)
	case err != nil || n < least || n > most:
		return problemf("is out of range: give a whole number from %d to %d", least, most)
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
		return problemf("is neither yes nor no: give 1 or 0")
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
	return problemf("is not known: use %s", orList(choices))
}

func setAgent(to *string, v string) error {
	switch v = strings.ToLower(v); v {
	case "auto", "relay", "direct", "demo":
		*to = v
		return nil
	}
	return problemf("is not an agent: use %s", orList(agents))
}

// split cuts a comma list, trims its items, and drops empty ones.
func split(v string) []string {
	var items []string
	for item := range strings.SplitSeq(v, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// errCommas is for a list that is set and has nothing in it. Taking it for an
// empty list could switch a filter off that somebody meant to have.
var errCommas = problemf("holds nothing but commas: fill it in or remove it")

func setIDs(to *[]string, v, what string) error {
	items := split(v)
	if items == nil {
		return errCommas
	}
	for _, id := range items {
		if !idForm.MatchString(id) {
			return problemf("is not a list of %s: %q is not one, give 1 to 128 of A-Z a-z 0-9 . _ - : @ between commas", what, shorten(id))
		}
	}
	*to = items
	return nil
}

func setUsers(to *[]string, v string) error {
	for _, id := range split(v) {
		if id == "*" {
			return problemf("does not take *: to approve everybody set MOBILE_ALLOW_ALL_USERS=1 instead")
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
			return problemf("is not a list of origins: %q is not one, write it like https://app.example.com", shorten(o))
		}
		items[i] = strings.ToLower(u.Scheme + "://" + u.Host) // the form in which browsers send it
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
			return problemf("is not a list of proxies: %q is neither an address nor a prefix, write 10.0.0.5 or 10.0.0.0/8, or none", shorten(p))
		}
	}
	*to = strings.Join(items, ",")
	return nil
}

// webURL parses an absolute http or https URL.
func webURL(v, example string) (*url.URL, error) {
	u, err := url.Parse(v)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return nil, &problem{text: "is not an http or https URL: write it like " + example, hide: strings.Contains(v, "@")}
	}
	if u.User != nil {
		return nil, &problem{text: "holds a user name: write it like " + example, hide: true}
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return nil, problemf("has a port that is none: write it like %s", example)
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
		return problemf(`has a part after "?" or "#": write it like %s`, example)
	}
	*to = strings.TrimRight(u.String(), "/")
	return nil
}

// setDirectory takes the address of an ACME server, which must be https: everything rests on it.
func setDirectory(to *string, v string) error {
	const example = "https://acme-v02.api.letsencrypt.org/directory"
	u, err := webURL(v, example)
	if err != nil {
		return err
	}
	if u.Scheme != "https" {
		return problemf("is not https: write it like %s", example)
	}
	*to = u.String()
	return nil
}

func setEmail(to *string, v string) error {
	a, err := mail.ParseAddress(v)
	if err != nil || a.Name != "" || a.Address != v {
		return problemf("is not an email address: write it like me@example.com")
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

// setWakeURL takes an address whose query may be a secret, so it is never quoted.
func setWakeURL(to *Secret, v string) error {
	const example = "https://host.example.com/start?key=…"
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" || strings.ContainsFunc(v, unicode.IsControl) {
		return problemf("is no web address without user and fragment: write it like %s", example)
	}
	*to = Secret(v)
	return nil
}

// newSecret is the remedy for every bad secret.
const newSecret = "make a new one with: openssl rand -hex 32"

// badSecret says what is wrong with the secret of a gateway.
func badSecret(v string) error {
	switch {
	case !utf8.ValidString(v) || strings.ContainsFunc(v, unicode.IsControl):
		return problemf("holds a control character or is not UTF-8: %s", newSecret)
	case strings.ContainsFunc(v, unicode.IsSpace):
		return problemf("holds a blank: %s", newSecret)
	case utf8.RuneCountInString(v) < minSecret:
		return problemf("is shorter than %d characters: %s", minSecret, newSecret)
	}
	return nil
}

// badToken says what is wrong with one token. It is stricter than badSecret,
// because a token is typed, scanned and sent by software of others.
func badToken(v string) error {
	if err := badSecret(v); err != nil {
		return err
	}
	if strings.ContainsFunc(v, func(r rune) bool { return r > '~' }) {
		return problemf("holds a letter that is not ASCII: %s", newSecret)
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

// setTokens checks a list of token or label=token and keeps it as a list,
// without empty items.
func setTokens(to *Secret, v string) error {
	items := split(v)
	if items == nil {
		return errCommas
	}
	for i, item := range items {
		_, token := splitLabel(item)
		if err := badToken(token); err != nil {
			if len(items) > 1 {
				return problemf("has a token at item %d that %s", i+1, err)
			}
			return err
		}
	}
	*to = Secret(strings.Join(items, ","))
	return nil
}

// splitLabel cuts one item of a token list, by the same rule as the package
// access, which is where the lists are used: only what has the form of a label
// is one, and "=" at the end belongs to a token in Base64.
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
