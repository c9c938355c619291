package main

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/server"
)

var rightMeans = map[string]string{
	"write":  "send messages and files, and stop the agent",
	"answer": "answer question cards",
	"call":   "use the agent's sessions, models, and jobs",
}

// deviceRights is the JSON result of devices rights.
type deviceRights struct {
	Device string     `json:"device"`
	Rights hub.Rights `json:"rights"`
}

func rightsCommand() *cobra.Command {
	cmd := jsonFlag(&cobra.Command{Use: "rights ID [CHANGE]", Short: "Show or change the rights of a device",
		Long: `Show the rights of a device, or change them: +RIGHT grants one, -RIGHT removes it. A new device has
all rights. A change takes effect at once.

  write   ` + rightMeans["write"] + `
  answer  ` + rightMeans["answer"] + `
  call    ` + rightMeans["call"],
		Example: `  hermes-mobile devices rights tel-1
  hermes-mobile devices rights wall-1 -write -answer -call
  hermes-mobile devices rights tel-1 +answer`})
	cmd.DisableFlagParsing = true // otherwise cobra parses -answer as flags
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		_, _, err := readRights(cmd, args)
		return err
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, change, err := readRights(cmd, args)
		if err != nil {
			return err
		}
		if help, _ := cmd.Flags().GetBool("help"); help {
			return cmd.Help()
		}
		rights, err := post[hub.Rights](cmd.Context(), cmd, "/devices/rights", server.Command{ID: id, Rights: change})
		if err != nil {
			return err
		}
		return show(cmd, deviceRights{id, rights}, func(w io.Writer) {
			table(w, "RIGHT | ALLOWED | TO", func(row func(...any)) {
				for _, name := range hub.RightNames {
					allowed := "no"
					if *hub.Right(&rights, name) {
						allowed = "yes"
					}
					row(name, allowed, rightMeans[name])
				}
			})
		})
	}
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var list []string
		if len(args) > 0 {
			for _, name := range hub.RightNames {
				list = append(list, "+"+name, "-"+name)
			}
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// readRights parses the command line of devices rights, flags included.
func readRights(cmd *cobra.Command, args []string) (id string, change map[string]bool, err error) {
	var others []string
	change = map[string]bool{}
	for _, word := range args {
		name := strings.TrimLeft(word, "+-")
		if strings.HasPrefix(word, "--") || !strings.HasPrefix(word, "+") && (!strings.HasPrefix(word, "-") || len(name) < 2) {
			others = append(others, word)
			continue
		}
		if !slices.Contains(hub.RightNames, name) {
			return "", nil, misuse(cmd, "unknown right %q: the rights are %s", name, strings.Join(hub.RightNames, ", "))
		}
		change[name] = word[0] == '+'
	}
	cmd.InheritedFlags() // makes cobra add the global flags to the set
	if err := cmd.Flags().Parse(others); err != nil {
		return "", nil, flagMisuse(cmd, err)
	}
	if help, _ := cmd.Flags().GetBool("help"); help {
		return "", nil, nil
	}
	if err := takes("ID")(cmd, cmd.Flags().Args()); err != nil {
		return "", nil, err
	}
	return cmd.Flags().Arg(0), change, nil
}

// missingRights describes the rights that a device lacks. It is empty if the device has all of them.
func missingRights(r hub.Rights) string {
	var list []string
	for _, name := range hub.RightNames {
		if !*hub.Right(&r, name) {
			list = append(list, name)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "may not " + strings.Join(list, " or ")
}
