package main

import "github.com/spf13/cobra"

func chatCommand() *cobra.Command { return &cobra.Command{Use: "chat", Hidden: true} }
