package main

import (
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hermes-mobile/frame"
	"hermes-mobile/internal/hub"
)

func deliveriesCommand() *cobra.Command {
	var device, state string
	var limit int
	cmd := jsonFlag(&cobra.Command{
		Use:   "deliveries",
		Short: "Show what became of scheduled messages and deliveries",
		Long: `Show what became of the results of scheduled jobs and of what was sent with "deliver", the newest first. A delivery is

  queued     kept for the device, which is away
  sent       written to the device's connection; it has not said that it has it
  delivered  the device has said that it has it
  seen       the device has said that a person was shown it
  expired    dropped, because the device did not come in time

Not every app says that it has something, or that it was seen. Records are kept for 30 days.`,
		Example: `  hermes-mobile deliveries
  hermes-mobile deliveries --device tel-1 --state queued
  hermes-mobile deliveries --json | jq -r '.[] | select(.job).state'`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if state != "" && !slices.Contains(hub.DeliveryStates, state) {
				return misuse(cmd, "--state takes one of %s", strings.Join(hub.DeliveryStates, ", "))
			}
			if limit < 1 {
				return misuse(cmd, "--limit takes a number from 1")
			}
			q := url.Values{"device": {strings.TrimPrefix(device, frame.SessionPrefix)}, "state": {state}, "limit": {strconv.Itoa(limit)}}
			list, err := get[[]hub.DeliveryInfo](cmd.Context(), cmd, "/deliveries?"+q.Encode())
			if err != nil {
				return err
			}
			return show(cmd, list, func(w io.Writer) { listDeliveries(w, list) })
		},
	})
	cmd.Flags().StringVar(&device, "device", "", "only those to this `device`")
	cmd.Flags().StringVar(&state, "state", "", "only those in this `state`: "+strings.Join(hub.DeliveryStates, ", "))
	cmd.Flags().IntVar(&limit, "limit", 50, "`number` of deliveries at most")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(hub.DeliveryStates, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func listDeliveries(w io.Writer, list []hub.DeliveryInfo) {
	if len(list) == 0 {
		fmt.Fprintln(w, "No deliveries.")
		return
	}
	table(w, "TIME | DEVICE | STATE | SINCE | WHAT", func(row func(...any)) {
		for _, d := range list {
			since := d.At
			for _, at := range []*time.Time{d.SentAt, d.DeliveredAt, d.SeenAt, d.ExpiredAt} {
				if at != nil {
					since = *at
				}
			}
			row(d.At.Local().Format(time.DateTime), d.Device, d.State, since.Local().Format(time.DateTime), deliveryOrigin(d))
		}
	})
}

// deliveryOrigin says where a delivery came from.
func deliveryOrigin(d hub.DeliveryInfo) string {
	what := "from " + d.Sender
	if d.Source == frame.SourceCron {
		if what = "scheduled job"; d.Job != "" {
			what += " " + d.Job
		}
	}
	if d.ID != "" {
		what += ", id " + d.ID
	}
	return what
}
