//go:build !unix

package main

func outliveReaders() {}
