package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/asowner"
	"hermes-mobile/internal/atomicfile"
	"hermes-mobile/internal/config"
)

// gatewayFile has the id and secret that the server generated for a gateway, in the format of
// Hermes' .env.
const gatewayFile = "relay.env"

func gatewayPath(cfg *config.Config) string { return filepath.Join(cfg.Data, gatewayFile) }

// OwnGateway returns the id and secret of a data folder whose settings have none. It generates them
// the first time, as a server that starts on the folder does.
func OwnGateway(data string) (id, secret string, err error) {
	if err := asowner.Do(data, func() error { return os.MkdirAll(data, 0o700) }); err != nil {
		return "", "", err
	}
	return ownGateway(filepath.Join(data, gatewayFile))
}

// HasOwnGateway reports whether OwnGateway has generated an id and secret.
func HasOwnGateway(data string) bool {
	_, err := os.Stat(filepath.Join(data, gatewayFile))
	return err == nil
}

// LetIn returns the gateways that a server with these settings accepts, none if it would have to
// generate a secret first.
func LetIn(cfg *config.Config) []config.Gateway {
	if len(cfg.Gateways) > 0 || !HasOwnGateway(cfg.Data) {
		return cfg.Gateways
	}
	id, secret, err := OwnGateway(cfg.Data)
	if err != nil {
		return nil
	}
	return []config.Gateway{{ID: id, Secret: config.Secret(secret), Devices: []string{"*"}}}
}

// ownGateway reads the generated id and secret, and generates them the first time.
func ownGateway(path string) (id, secret string, err error) {
	text, _, err := asowner.ReadFile(path, 64<<10)
	if errors.Is(err, fs.ErrNotExist) {
		text = fmt.Appendf(nil, "GATEWAY_RELAY_ID=hermes-%s\nGATEWAY_RELAY_SECRET=%s\n", access.NewSecret()[:8], access.NewSecret())
		err = asowner.Do(path, func() error { return atomicfile.Replace(path, text, atomicfile.Options{}) })
	}
	if err != nil {
		return "", "", fmt.Errorf("the gateway's id and secret: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "GATEWAY_RELAY_ID":
			id = value
		case "GATEWAY_RELAY_SECRET":
			secret = value
		}
	}
	if id == "" || secret == "" {
		return "", "", fmt.Errorf("%s has no id or no secret: delete it, and the server generates new ones", path)
	}
	return id, secret, nil
}
