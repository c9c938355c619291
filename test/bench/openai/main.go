// Openai reads the streams of the gateway part with the OpenAI client for Go. It is a module of its own, so that the
// product's does not depend on that.
package main

import (
	"context"
	"runtime/debug"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"hermes-mobile/test/bench/measure"
)

func main() {
	measure.Main(func(s measure.Server) (measure.Read, string, error) {
		client := openai.NewClient(option.WithBaseURL(s.URL+"/v1/"), option.WithAPIKey(s.Key))
		return func(ctx context.Context, model string, on func(string)) error {
			stream := client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{
				Model:    model,
				Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("go")},
			})
			defer stream.Close()
			for stream.Next() {
				if choices := stream.Current().Choices; len(choices) > 0 && choices[0].Delta.Content != "" {
					on(choices[0].Delta.Content)
				}
			}
			return stream.Err()
		}, version(), nil
	})
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == "github.com/openai/openai-go/v3" {
			return m.Version
		}
	}
	return "?"
}
