package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

func TestSecretIsHidden(t *testing.T) {
	const value = "0123456789abcdef"
	c := Config{Token: value, MetricsToken: value, ExtraTokens: value, DeliverTokens: value, Gateways: []Gateway{{ID: "a", Secret: value}}}
	for _, v := range []any{Secret(value), c, &c, c.Gateways, map[string]Secret{"a": value}} {
		var out bytes.Buffer
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%U", "%!", "%T"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		fmt.Fprintln(&out, v)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
		if b, err := json.Marshal(v); err != nil {
			t.Error(err)
		} else {
			out.Write(b)
		}
		if b, err := yaml.Marshal(v); err != nil {
			t.Error(err)
		} else {
			out.Write(b)
		}
		if s := out.String(); strings.Contains(s, value) || strings.Contains(strings.ToLower(s), fmt.Sprintf("%x", value)) {
			t.Errorf("%T shows the secret:\n%s", v, s)
		}
	}
	if Secret(value).Reveal() != value || Secret("").String() != "" {
		t.Error("Reveal or an empty secret")
	}
}
