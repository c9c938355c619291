package main

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"hermes-mobile/frame"
	"hermes-mobile/internal/server"
)

func deliverCommand() *cobra.Command {
	var f frame.Deliver
	var file string
	cmd := jsonFlag(&cobra.Command{
		Use:   "deliver --to DEVICE --text TEXT",
		Short: "Send a text or a file to a device, as a scheduled job would",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.Text == "" && file == "" {
				return errors.New("a delivery needs --text or --file")
			}
			if file != "" {
				if err := attach(&f, file); err != nil {
					return err
				}
			}
			d, err := post[frame.Delivered](cmd.Context(), cmd, "/deliver", server.Command{Frame: &f})
			if err != nil {
				return err
			}
			return show(cmd, map[string]any{"to": f.To, "queued": d.Queued}, func(w io.Writer) {
				if d.Queued {
					fmt.Fprintf(w, "kept for %s, which is away\n", clean(f.To))
					return
				}
				fmt.Fprintf(w, "sent to %s\n", clean(f.To))
			})
		},
	})
	cmd.Flags().StringVar(&f.To, "to", "", "device id, mobile:<device id>, or home")
	cmd.Flags().StringVar(&f.Text, "text", "", "text of the message, or caption of the file")
	cmd.Flags().StringVar(&file, "file", "", "file to send")
	cmd.Flags().StringVar(&f.ID, "id", "", "id of the delivery: the same one is made once")
	cmd.Flags().BoolVar(&f.RequireLive, "require-live", false, "fail if the device is not connected now")
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

func attach(f *frame.Deliver, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() == 0 || info.IsDir() {
		return fmt.Errorf("%s is not a file with something in it", path)
	}
	if f.Data, err = os.ReadFile(path); err != nil {
		return err
	}
	f.Filename = filepath.Base(path)
	f.Mime = mime.TypeByExtension(filepath.Ext(path))
	return nil
}
