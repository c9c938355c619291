package main

import (
	"hermes-mobile/internal/setup"
)

// What hermes-mobile setup --api does: it switches Hermes' API server on, and says what our side needs to know of it.
func (w *wizard) api() error {
	plan, api, err := setup.NewAPIPlan(w.result.Home, "")
	if err != nil {
		return err
	}
	w.say("Hermes home     %s", w.result.Home.Path)
	if err := w.show(plan, "<secret> is made when it is written, and stands there only."); err != nil {
		return err
	}
	if !w.f.print && !plan.Done() {
		if err := w.agree(plan); err != nil {
			return err
		}
		if plan, api, err = setup.NewAPIPlan(w.result.Home, setup.NewAPIKey()); err != nil {
			return err
		}
		if err := w.write(plan); err != nil {
			return err
		}
		w.next("restart the gateway, so that it starts its API server", plan.Restart())
	}
	w.result.URL, w.result.API = api.URL, &api
	w.say("\nThe settings of this server that go with it:")
	w.say("  MOBILE_API_URL=%s", api.URL)
	switch {
	case api.FromHere && w.result.Home.Path == w.cfg.HermesHome:
		w.say("  the key is %s in %s; a server on this machine reads it there", api.KeyName, api.KeyPlace)
	default:
		api.FromHere = false
		w.say("  MOBILE_API_KEY_FILE names a file with the key, which is %s in %s", api.KeyName, api.KeyPlace)
	}
	if err := w.apiJobs(); err != nil {
		return err
	}
	return w.end()
}

// apiJobs asks once for the scheduled jobs, which Hermes does not advertise. Who has set it is not asked.
func (w *wizard) apiJobs() error {
	const name = "MOBILE_API_JOBS"
	switch {
	case w.cfg.APIJobs != "":
		return nil
	case !w.asking():
		w.say("  %s=on shows the scheduled jobs of Hermes, too; it is off, since Hermes does not advertise them and a later version may change them without notice", name)
		return nil
	}
	w.say("\nHermes' API has scheduled jobs and does not advertise them to apps. They work with the versions tested, and a later one may change them without notice.")
	yes, err := w.yes("Use them?")
	answer := "off"
	if yes {
		answer = "on"
	}
	if err == nil {
		w.say("  %s=%s", name, answer)
	}
	return err
}
