#!/usr/bin/env bash
# Finds or fetches the reverse proxies that the tests in this folder run, and starts no service.
#
# Prints a line for each: "caddy PATH", "nginx PATH" and "haproxy PATH", or "nginx - WHY" where there is none to be had. What is
# on the PATH is used. Else Caddy is built from its source at the version below, and nginx and HAProxy are unpacked, not installed,
# from the packages of a Debian or Ubuntu system: their install scripts would start them as services. All of it lands in
# ${HERMES_TEST_CACHE:-$HOME/.cache/hermes-mobile-test}; a second run finds it there and only prints.
set -euo pipefail

caddy_version=v2.11.9
cache=${HERMES_TEST_CACHE:-$HOME/.cache/hermes-mobile-test}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
PATH=$PATH:/usr/sbin:/usr/local/sbin

# at_least MAJOR.MINOR TEXT: the first version in the text is that one or a newer one.
at_least() {
	local major=${1%.*} minor=${1#*.}
	[[ $2 =~ ([0-9]+)\.([0-9]+) ]] || return 1
	((BASH_REMATCH[1] > major || BASH_REMATCH[1] == major && BASH_REMATCH[2] >= minor))
}

install_caddy() {
	local dir=$cache/caddy-$caddy_version found
	# The recipe has stream_close_delay, which Caddy knows since 2.7.
	if found=$(command -v caddy) && at_least 2.7 "$("$found" version 2>/dev/null)"; then
		echo "caddy $found"
		return
	fi
	if [ ! -x "$dir/caddy" ]; then
		rm -rf "$dir" "$dir.new"
		CGO_ENABLED=0 GOBIN=$dir.new GOFLAGS=-trimpath go install "github.com/caddyserver/caddy/v2/cmd/caddy@$caddy_version" >"$dir.log" 2>&1 || {
			cat "$dir.log" >&2
			exit 1
		}
		rm -f "$dir.log"
		mv "$dir.new" "$dir"
	fi
	echo "caddy $dir/caddy"
}

missing() { ldd "$1" | awk '/not found/ {print $1}' | paste -sd ' '; }

# take unpacks a package of a library, where there is such a package.
take() {
	local deb
	fetch "$1" || return 0
	for deb in "$1"_*.deb; do dpkg-deb -x "$deb" root; done
}

# libraries names the packages of libraries that a package needs.
libraries() { dpkg-deb -f "$1" Depends 2>/dev/null | tr ',' '\n' | awk '$1 ~ /^lib/ && $1 !~ /^libc6/ {print $1}'; }

# unpack FOLDER PROGRAM PACKAGE...: makes a folder with the program out of the first package that has it, and with the libraries that it
# needs and the system lacks.
unpack() {
	local dir=$1 program=$2 deb name more
	shift 2
	cd "$dir"
	for name in "$@"; do # where the program is differs from release to release
		fetch "$name" || continue
		for deb in "$name"_*.deb; do dpkg-deb -x "$deb" root; done
		[ ! -x "root/usr/sbin/$program" ] || break
	done
	if [ ! -x "root/usr/sbin/$program" ]; then
		echo "no package of this system holds it"
		return 1
	fi
	if [ -n "$(missing "root/usr/sbin/$program")" ]; then
		for name in $(libraries "$deb"); do
			take "$name"
			for more in $(libraries "$name"_*.deb); do take "$more"; done
		done
		printf '#!/bin/sh\nLD_LIBRARY_PATH="%s" exec "%s" "$@"\n' "$(find "$dir/root" -name '*.so*' -printf '%h\n' | sort -u | paste -sd :)" \
			"$dir/root/usr/sbin/$program" >"$program"
		chmod 755 "$program"
		if ! "./$program" -v >/dev/null 2>&1; then
			echo "libraries are missing: $(missing "root/usr/sbin/$program")"
			return 1
		fi
	else
		ln -s "root/usr/sbin/$program" "$program"
	fi
	rm -f ./*.deb
}

# fetch downloads a package; the lists of packages are brought up to date where that is why it fails.
updated=
fetch() {
	apt-get download -qq "$1" >/dev/null 2>&1 && return
	if [ -z "$updated" ] && [ "$(id -u)" = 0 ]; then
		updated=yes
		apt-get update -qq >/dev/null 2>&1 || return
		apt-get download -qq "$1" >/dev/null 2>&1 && return
	fi
	return 1
}

# install PROGRAM MIN_VERSION PACKAGE...
install() {
	local program=$1 least=$2 dir=$cache/$1 found why
	shift 2
	if found=$(command -v "$program"); then
		if at_least "$least" "$("$found" -v 2>&1)"; then
			echo "$program $found"
		else
			echo "$program - $found is older than $least"
		fi
		return
	fi
	if [ ! -e "$dir/$program" ]; then
		if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
			echo "$program - it is not installed, and this is no Debian system to take it from"
			return
		fi
		rm -rf "$dir"
		mkdir "$dir"
		if ! why=$(unpack "$dir" "$program" "$@"); then
			rm -rf "$dir"
			echo "$program - it is not installed, and could not be unpacked: $why"
			return
		fi
	fi
	echo "$program $dir/$program"
}

# A second run waits here and then finds what the first has made.
exec 9>"$cache/proxy.lock"
flock 9
install_caddy
install nginx 1.20 nginx nginx-core nginx-light # the tests start it with -e
install haproxy 2.2 haproxy
