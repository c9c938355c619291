package term

import (
	"context"
	"errors"
	"os"
	"sync"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"hermes-mobile/device"
)

// runFull runs the full-screen chat.
func runFull(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out)}
	if _, ok := o.Out.(*os.File); !ok {
		options = append(options, tea.WithWindowSize(80, 24)) // there is nobody to ask for the size
	}
	if o.NoColor {
		options = append(options, tea.WithColorProfile(colorprofile.ASCII))
	}
	p := tea.NewProgram(newModel(ctx, o.Device, o), options...)
	var pump sync.WaitGroup
	pump.Go(func() { feed(ctx, o.Device, o.SaveDir, true, p.Send) })
	_, err := p.Run()
	parent := context.Cause(ctx)
	cancel()
	pump.Wait()
	if parent != nil {
		return parent
	}
	if errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}

// feed passes each event of the device to the screen. It saves a file first: once the event counts
// as handled, the server may forget the file. A file with a link is downloaded later, because that
// may take long. With person, somebody looks at the screen.
func feed(ctx context.Context, d *device.Device, dir string, person bool, send func(tea.Msg)) {
	for {
		ev, handled, err := d.NextEvent(ctx)
		if err != nil {
			return
		}
		shown := make(chan struct{})
		msg := eventMsg{ev: ev, handled: func() { close(shown) }}
		if f, ok := ev.(device.File); ok && (f.URL == "" || f.Err != nil) {
			msg.path, msg.err = save(ctx, d, dir, f)
		}
		send(msg)
		select {
		case <-shown:
			handled()
			switch ev.(type) {
			case device.Message, device.File, device.CardDone, device.Echo:
				if person {
					d.Seen()
				}
			}
		case <-ctx.Done():
			return
		}
	}
}
