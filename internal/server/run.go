package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
)

// Run serves until ctx ends. Then it stops in order: it accepts no new connections, ends the agent,
// finishes streamed messages, tells the devices, and closes the store last.
func (s *Server) Run(ctx context.Context) error {
	defer s.release()
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var work sync.WaitGroup
	agentDone := make(chan struct{})
	agentCtx, endAgent := context.WithCancel(life)
	defer endAgent()
	work.Go(func() { s.keeper.Run(life) })
	if err := s.hub.Start(life); err != nil {
		return err
	}
	go func() {
		defer close(agentDone)
		if err := s.agent.Run(agentCtx, s.hub); err != nil && agentCtx.Err() == nil {
			s.log.Error("agent stopped", "err", err)
		}
	}()
	work.Go(func() { s.pairing.Watch(life, pairingChanged(life, s.hub, s.log)) })
	work.Go(func() { s.maintenance.run(life) })
	work.Go(func() { s.failed.run(life) })
	work.Go(func() { tidy(life, s.hub.Connections) })
	work.Go(func() { s.health.snapshots.run(life) })
	if certs := s.addresses.certs; certs != nil {
		work.Go(func() { certs.Run(life) })
	}

	web, admin := s.webServer(), newSocketServer(s.adminAPI.handler(), s.log)
	failed := make(chan error, 2)
	work.Go(func() { failed <- web.Serve(s.listener) })
	work.Go(func() { failed <- admin.Serve(s.admin) })

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.log.Info("stopping")
	grace, cancel := context.WithTimeout(life, closeTimeout)
	defer cancel()
	_ = s.listener.Close()
	endAgent() // first: the hub then ends what the agent began, and both must not
	<-agentDone
	s.api.close()
	s.hub.Close(grace)
	err = errors.Join(ignoreClosed(err), ignoreClosed(web.Shutdown(grace)), ignoreClosed(admin.Shutdown(grace)))
	_ = web.Close()
	_ = admin.Close()
	s.probes.close()
	end()
	work.Wait()
	return err
}

// webServer returns the HTTP server for the network.
func (s *Server) webServer() *http.Server {
	h := encrypted(s.addresses.certs, s.cfg.TLS, s.embedded.guarded(s.handler()))
	web := newHTTPServer(unambiguous(unstalled(h, bodyGrace, answerStall)), s.log)
	s.strangers.Watch(web, s.addresses.client)
	if s.addresses.certs != nil {
		web.TLSNextProto = s.addresses.certs.Silent()
	}
	return web
}

// release closes what New opened, the store last.
func (s *Server) release() {
	if s.listener != nil {
		_ = s.listener.Close()
	}
	if s.admin != nil {
		_ = s.admin.Close()
	}
	if s.addresses != nil && s.addresses.certs != nil {
		s.addresses.certs.Close()
	}
	if s.push != nil {
		s.push.Close()
	}
	if s.api != nil {
		s.api.close()
	}
	if s.store != nil {
		if err := s.store.Close(); err != nil {
			s.log.Error("store not closed cleanly", "err", err)
		}
		s.store = nil
	}
}
