package doctor

import (
	"context"
	"sync"
	"time"
)

// patience bounds each step of a look at the public address, and a look as a whole.
const (
	stepPatience = 5 * time.Second
	lookPatience = 30 * time.Second
)

// LookOutside adds to the facts what is seen from outside: the certificate at the public address, and, with a probe of the
// running server, the way to it. It takes seconds.
func LookOutside(ctx context.Context, f *Facts, public, path string, probe *Probe) {
	if public == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	var both sync.WaitGroup
	var certificate *Certificate
	both.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, stepPatience)
		defer cancel()
		if c, ok := LookCertificate(ctx, public, f.Now); ok {
			certificate = &c
		}
	})
	if probe != nil {
		both.Go(func() { f.Public = Prober{Patience: stepPatience}.Look(ctx, public, path, *probe) })
	}
	both.Wait()
	if certificate != nil {
		f.Certificates = append(f.Certificates, *certificate)
	}
}
