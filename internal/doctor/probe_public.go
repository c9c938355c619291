package doctor

import (
	"context"
	"sync"
	"time"
)

// Timeouts of each step of probing the public address, and of the whole.
const (
	stepTimeout  = 5 * time.Second
	probeTimeout = 30 * time.Second
)

// ProbePublic adds facts about the public address: the certificate and, with a probe of the running server,
// the connection. It takes seconds.
func ProbePublic(ctx context.Context, f *Facts, public, path string, probe *Probe) {
	if public == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var both sync.WaitGroup
	var certificate *Certificate
	both.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, stepTimeout)
		defer cancel()
		if c, ok := ProbeCertificate(ctx, public, f.Now); ok {
			certificate = &c
		}
	})
	if probe != nil {
		both.Go(func() { f.Public = Prober{Timeout: stepTimeout}.Run(ctx, public, path, *probe) })
	}
	both.Wait()
	if certificate != nil {
		f.Certificates = append(f.Certificates, *certificate)
	}
}
