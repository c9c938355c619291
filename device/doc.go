// Package device is the Go client of the Hermes Mobile device protocol (doc/protocol.md). Apps,
// scripts and bots use it to talk to an agent through `hermes-mobile serve`.
//
// [Open] returns a [Device] that connects in the background and stays connected: it backs off,
// reconnects, resumes, and gives up only where the server says that retrying is pointless. It makes
// two promises:
//
//   - Everything that [Device.Send], [Device.SendVoice], [Device.SendFile] and [Device.Answer] accept
//     reaches the server at least once, messages in order, and the server drops duplicates by id. With
//     a durable [Store], texts, voice messages and answers survive the end of the process, too.
//   - Everything durable that the server sends (final messages, files, ends of cards, deliveries) comes
//     out of [Device.Events] exactly once and in order, across reconnects. The device acknowledges an
//     event only after the loop body ended for it and the store holds the new cursor. A process that
//     dies in between gets that event again.
//
// A program is one loop:
//
//	dev, err := device.Open(ctx, device.Config{URL: "ws://127.0.0.1:8787/ws", Token: token, Device: frame.Device{ID: "tel-1"}})
//	…
//	defer dev.Close(ctx)
//	dev.Send(ctx, "hello")
//	for ev, err := range dev.Events(ctx) {
//		if err != nil {
//			return err
//		}
//		switch ev := ev.(type) {
//		case device.Message:
//			show(ev.ID, ev.Text, ev.Final) // redraw by id
//		case device.CardShown:
//			…
//		}
//	}
//
// Every program must range over Events, because the loop moves the cursor. A slow loop loses
// nothing durable: see [Device.Events].
//
// All methods of Device are safe for concurrent use, also from inside the loop. The package does
// not log. Its errors begin with "device: " and work with [errors.Is] and [errors.As]: [ErrClosed],
// [ErrLinkLost], [ErrUnsupported], [ErrReplaced], [ErrFingerprint], [ErrEventsInUse],
// [*NoAccessError], [*DownloadError], [*frame.Error] and [*frame.CallError]. Every goroutine that
// Open starts has ended when [Device.Close] returns nil.
//
// # Compatibility
//
// From 1.0 on this package follows semantic versioning. A minor version may add events, states, and
// fields of [Config], [Status] and the events: write struct literals with field names, and give
// every switch over events or states a default case. The texts of errors may change at any time. A
// folder of [NewFileStore] stays readable by all later versions. An older server works with a newer
// client and the other way around, as the protocol says.
package device
