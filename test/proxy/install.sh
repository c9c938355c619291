#!/usr/bin/env bash
# Finds or fetches the reverse proxies that the tests in this folder run, and starts no service.
#
# Prints a line for each: "caddy PATH" and "nginx PATH", or "nginx - WHY" where there is none to be had. What is on the
# PATH is used. Else Caddy is built from its source at the version below, and nginx is unpacked, not installed, from the
# packages of a Debian or Ubuntu system: their install scripts would start it on port 80. All of it lands in
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

# unpack makes a folder with the program nginx, and the libraries that it needs and the system lacks.
unpack() {
	local dir=$1 deb name
	cd "$dir"
	for name in nginx nginx-core nginx-light; do # where the program is differs from release to release
		fetch "$name" || continue
		for deb in "$name"_*.deb; do dpkg-deb -x "$deb" root; done
		[ ! -x root/usr/sbin/nginx ] || break
	done
	if [ ! -x root/usr/sbin/nginx ]; then
		echo "no package of this system holds it"
		return 1
	fi
	if [ -n "$(missing root/usr/sbin/nginx)" ]; then
		for name in $(dpkg-deb -f "$deb" Depends | tr ',' '\n' | awk '$1 ~ /^lib/ && $1 !~ /^libc6/ {print $1}'); do
			fetch "$name" || continue
			for deb in "$name"_*.deb; do dpkg-deb -x "$deb" root; done
		done
		printf '#!/bin/sh\nLD_LIBRARY_PATH="%s" exec "%s" "$@"\n' "$(find "$dir/root" -name '*.so*' -printf '%h\n' | sort -u | paste -sd :)" \
			"$dir/root/usr/sbin/nginx" >nginx
		chmod 755 nginx
		if ! ./nginx -v >/dev/null 2>&1; then
			echo "libraries are missing: $(missing root/usr/sbin/nginx)"
			return 1
		fi
	else
		ln -s root/usr/sbin/nginx nginx
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

install_nginx() {
	local dir=$cache/nginx found why
	if found=$(command -v nginx); then
		if at_least 1.20 "$("$found" -v 2>&1)"; then # the tests start it with -e
			echo "nginx $found"
		else
			echo "nginx - $found is older than 1.20"
		fi
		return
	fi
	if [ ! -e "$dir/nginx" ]; then
		if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
			echo "nginx - it is not installed, and this is no Debian system to take it from"
			return
		fi
		rm -rf "$dir"
		mkdir "$dir"
		if ! why=$(unpack "$dir"); then
			rm -rf "$dir"
			echo "nginx - it is not installed, and could not be unpacked: $why"
			return
		fi
	fi
	echo "nginx $dir/nginx"
}

# A second run waits here and then finds what the first has made.
exec 9>"$cache/proxy.lock"
flock 9
install_caddy
install_nginx
