package main

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"hermes-mobile/frame"
	"hermes-mobile/internal/plaintext"
	"hermes-mobile/internal/server"
	"hermes-mobile/internal/term"
)

func deliverCommand() *cobra.Command {
	var f frame.Deliver
	var file string
	cmd := jsonFlag(&cobra.Command{
		Use:   "deliver --to DEVICE (--text TEXT | --file FILE)",
		Short: "Send a text or a file to a device",
		Long: `Send a text or a file to a device, as a scheduled job does. The server queues it while the device is
offline, unless you pass --require-live or set MOBILE_OFFLINE_DELIVERY=reject.

"home" is the home channel: the device that sent /sethome or that you chose with "hermes-mobile home set".`,
		Example: `  hermes-mobile deliver --to home --text "The laundry is done"
  df -h | hermes-mobile deliver --to tel-1 --text -
  hermes-mobile deliver --to tel-1 --file report.pdf --text "Your report" --id report-2026-05`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fill(cmd, &f, file); err != nil {
				return err
			}
			d, err := post[server.Delivery](cmd.Context(), cmd, "/deliver", server.Command{Frame: &f})
			if err != nil {
				if refused := (*server.Refused)(nil); errors.As(err, &refused) {
					switch frame.Code(refused.Code) {
					case frame.DeviceOffline:
						err = hint(err, "list devices with: hermes-mobile devices list; show the home channel with: hermes-mobile home")
					case frame.NoSpace:
						err = hint(err, "check the storage with: hermes-mobile status")
					}
				}
				return err
			}
			result := map[string]any{"to": f.To, "device": d.Device, "queued": d.Queued}
			if d.ID != "" {
				result["id"] = d.ID
			}
			return show(cmd, result, func(w io.Writer) {
				to := clean(d.Device)
				if f.To == "home" {
					to += " (home channel)"
				}
				if d.Queued {
					fmt.Fprintf(w, "Queued for %s, which is offline\n", to)
					return
				}
				fmt.Fprintf(w, "Sent to %s\n", to)
			})
		},
	})
	cmd.Flags().StringVar(&f.To, "to", "", "`device` id, mobile:ID, or home")
	cmd.Flags().StringVar(&f.Text, "text", "", "`text` of the message, or caption of the file; - reads standard input")
	cmd.Flags().StringVar(&file, "file", "", "`file` to send")
	cmd.Flags().StringVar(&f.ID, "id", "", "delivery `id`: the server delivers the same id once within 24 hours")
	cmd.Flags().BoolVar(&f.RequireLive, "require-live", false, "fail if the device is offline")
	_ = cmd.MarkFlagFilename("file")
	return cmd
}

// largestFile is the largest file that fits into a request to the running server, in base64.
const largestFile = 47 << 20

// fill reads the text and the file, and checks the delivery as the server checks frames from the network.
func fill(cmd *cobra.Command, f *frame.Deliver, file string) error {
	if f.To == "" {
		return misuse(cmd, "missing flag: --to")
	}
	if f.Text == "-" {
		text, err := io.ReadAll(io.LimitReader(plaintext.Reader(cmd.InOrStdin()), frame.MaxText+2))
		if err != nil {
			return fmt.Errorf("read the text from standard input: %w", err)
		}
		f.Text = strings.TrimSuffix(string(text), "\n")
		if f.Text == "" && file == "" {
			return errors.New("no text on standard input")
		}
	}
	if f.Text == "" && file == "" {
		return misuse(cmd, "missing flag: --text or --file")
	}
	check := *f
	if file != "" {
		check.Data = []byte{0}
	}
	if _, err := frame.DecodeUp(frame.EncodeUp(&check)); err != nil {
		if bad := (*frame.Error)(nil); errors.As(err, &bad) {
			return misuse(cmd, "%s", bad.Message)
		}
		return err
	}
	if file == "" {
		return nil
	}
	return attach(f, file)
}

func attach(f *frame.Deliver, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return term.Unreadable(path, err)
	}
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: not a regular file", path)
	case info.Size() == 0:
		return fmt.Errorf("%s: file is empty", path)
	case info.Size() > largestFile:
		return fmt.Errorf("%s: file exceeds the %d MiB limit", path, largestFile>>20)
	}
	if f.Data, err = os.ReadFile(path); err != nil {
		return term.Unreadable(path, err)
	}
	f.Filename = filepath.Base(path)
	f.Mime = mime.TypeByExtension(filepath.Ext(path))
	return nil
}
