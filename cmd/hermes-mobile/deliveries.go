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
		Short: "List deliveries and results of scheduled jobs, with their state",
		Long: `List the results of scheduled jobs and the messages sent with "deliver", newest first. A delivery is:

  queued     waiting for the device, which is offline
  sent       written to the device's connection, not acknowledged yet
  delivered  acknowledged by the device
  seen       shown to the user
  expired    dropped because the device did not connect in time

Not every app acknowledges deliveries or reports them as seen. Records are kept for 30 days.`,
		Example: `  hermes-mobile deliveries
  hermes-mobile deliveries --device tel-1 --state queued
  hermes-mobile deliveries --json | jq -r '.[] | select(.job).state'`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if state != "" && !slices.Contains(hub.DeliveryStates, state) {
				return misuse(cmd, "--state %s: use one of %s", state, strings.Join(hub.DeliveryStates, ", "))
			}
			if limit < 1 {
				return misuse(cmd, "--limit %d: use a positive number", limit)
			}
			q := url.Values{"device": {strings.TrimPrefix(device, frame.SessionPrefix)}, "state": {state}, "limit": {strconv.Itoa(limit)}}
			list, err := get[[]hub.DeliveryInfo](cmd.Context(), cmd, "/deliveries?"+q.Encode())
			if err != nil {
				return err
			}
			return show(cmd, list, func(w io.Writer) { listDeliveries(w, list) })
		},
	})
	cmd.Flags().StringVar(&device, "device", "", "show only deliveries to this `device`")
	cmd.Flags().StringVar(&state, "state", "", "show only this `state`: "+strings.Join(hub.DeliveryStates, ", "))
	cmd.Flags().IntVar(&limit, "limit", 50, "show at most this `number` of deliveries")
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

// deliveryOrigin describes the sender of a delivery.
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
