//go:build unix && !linux

package chaos

func withOwnMounts() (status int, ran bool) { return 0, false }

func mountDisk(string) bool { return false }

func unmountDisk(string) {}

func fillDisk(string, int64) error { return nil }

func freeDisk(string) error { return nil }

func handles(int) (int, bool) { return 0, false }
