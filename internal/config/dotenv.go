package config

import (
	"errors"
	"os"
	"strings"

	"hermes-mobile/internal/asowner"
	"hermes-mobile/internal/dotenv"
	"hermes-mobile/internal/plaintext"
)

// readDotenv reads Hermes' .env, which need not exist.
func (l *loader) readDotenv(file string, environ map[string]string) {
	text, _, err := asowner.ReadFile(file, maxFile)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if errors.Is(err, os.ErrPermission) { // a server with its own account keeps its settings elsewhere
		l.warn("", file, "%s is ignored: this account may not read it", l.short(file))
		return
	}
	if err != nil {
		l.unreadable(file, err)
		return
	}
	if text, err = plaintext.Trim(text); err != nil {
		l.warn("", file, "%s is ignored: %s", l.short(file), err)
		return
	}
	set := map[string]string{}
	lookup := func(name string) (string, bool) {
		if v, ok := set[name]; ok {
			return v, true
		}
		v, ok := environ[name]
		return v, ok
	}
	secrets := false
	for _, b := range dotenv.Parse(string(text)) {
		where := l.at(file, b.Line)
		switch {
		case b.Bad:
			// Other lines belong to Hermes, and an unreadable line may contain a secret.
			skipped := string(text[b.Start:b.End])
			if strings.Contains(skipped, prefix) || strings.Contains(skipped, hermesRelayID) || strings.Contains(skipped, hermesRelaySecret) || strings.Contains(skipped, hermesAPIKey) {
				l.warn("", where, "a line is ignored (%s): it is not NAME=value, or a quote is not closed", where)
			}
		case b.Bare:
			if strings.HasPrefix(b.Key, prefix) {
				l.warn(b.Key, where, "%s (%s) is ignored: it has no value", quoteOdd(b.Key), where)
			}
			set[b.Key] = "" // python-dotenv clears values from lines above, too
			delete(l.values[inDotenv], b.Key)
		default:
			v := dotenv.Expand(b.Value, lookup)
			set[b.Key] = v
			if b.Key == hermesAPIHost || b.Key == hermesAPIPort {
				l.hermesAPI[b.Key] = v
			}
			l.named(b.Key, value{text: v, key: b.Key, where: where, place: inDotenv})
			if k, ok := keyNamed(b.Key); ok && k.Secret() && v != "" {
				secrets = true
			}
		}
	}
	if secrets {
		l.checkMode(file)
	}
}
