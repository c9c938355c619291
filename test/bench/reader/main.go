// Reader reads the streams of the gateway part with package gateway.
package main

import (
	"context"
	"errors"
	"runtime"

	"hermes-mobile/gateway"
	"hermes-mobile/test/bench/measure"
)

func main() {
	measure.Main(func(s measure.Server) (measure.Read, string, error) {
		profile := gateway.Profile{Kind: gateway.OpenAI, Remote: s.URL, Auth: gateway.AuthBearer}
		way := gateway.ModeCompletions
		if s.Way == "runs" {
			profile.Kind, way = gateway.Hermes, gateway.ModeRun
		}
		client, err := gateway.New(profile, gateway.Credentials{Token: gateway.NewSecret(s.Key)}, gateway.Options{})
		if err != nil {
			return nil, "", err
		}
		return func(ctx context.Context, model string, on func(string)) error {
			turn, err := client.StartTurn(ctx, gateway.TurnRequest{Text: "go", Model: model, Mode: way})
			if err != nil {
				return err
			}
			defer turn.Close()
			for event, err := range turn.Events(ctx) {
				if err != nil {
					return err
				}
				switch e := event.(type) {
				case gateway.Delta:
					on(e.Text)
				case gateway.Ended:
					if e.Outcome.State != gateway.Completed {
						return errors.Join(errors.New("the turn ended "+string(e.Outcome.State)), e.Outcome.Err)
					}
				}
			}
			return nil
		}, runtime.Version(), nil
	})
}
