// Package device is the client of the Hermes Mobile device protocol (doc/protocol.md): what an app, a script or a bot
// uses to talk to an agent through `hermes-mobile serve`.
//
// [Open] gives a [Device] that connects by itself and stays connected: it backs off, reconnects, resumes where it was and
// gives up only where the server says that trying again is pointless. Two promises matter to an app:
//
//   - What [Device.Send], [Device.SendVoice], [Device.SendFile] and [Device.Answer] took reaches the server at least once
//     and, for messages, in the order they were sent; the server drops the doubles by id. With a durable [Store] texts,
//     voice messages and answers survive the end of the process too.
//   - What the server sends durably (final messages, files, cards' ends, deliveries) comes out of [Device.Events] exactly
//     once and in order, across reconnects. The server is told that an event arrived only after the body of the loop
//     ended for it and the new cursor was stored. A process that dies in between gets that event again.
//
// A program is one loop:
//
//	dev, err := device.Open(ctx, device.Config{URL: "ws://127.0.0.1:8787/ws", Token: token, Device: frame.Device{ID: "tel-1"}})
//	…
//	defer dev.Close(context.Background())
//	dev.Send(ctx, "hello")
//	for ev := range dev.Events(ctx) {
//		switch ev := ev.(type) {
//		case device.Message:
//			show(ev.ID, ev.Text, ev.Final) // redraw by id
//		case device.CardShown:
//			…
//		}
//	}
//
// Somebody must range over Events: it is what moves the cursor. A slow loop loses nothing durable: see [Device.Events].
//
// All methods of Device may be called from any goroutine, also from inside the loop. Nothing is logged; errors are typed:
// [*NoAccessError], [*frame.Error], [*CallError], [*DownloadError], [ErrClosed], [ErrLinkLost], [ErrUnsupported].
// Every goroutine that Open starts has ended when [Device.Close] returns nil.
package device
