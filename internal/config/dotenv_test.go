package config

import "testing"

func TestDotenvThroughLoad(t *testing.T) {
	c := mustLoad(t, fixture{
		environ: []string{"MOBILE_AGENT=demo", "OUTER=o"},
		dotenv:  "BASE=https://a.example\nMOBILE_PUBLIC_URL=\"${BASE}/${OUTER}/${NONE:-d}${NONE}\"\nMOBILE_PORT=1\nMOBILE_PORT=2\nMOBILE_HOST\nMOBILE_PATH='/x\n",
	}.sources(t),
		"MOBILE_HOST (in ~/.hermes/.env, line 5) is ignored: it has no value",
		"a line is ignored (in ~/.hermes/.env, line 6): it is not NAME=value, or a quote is not closed")
	if c.PublicURL != "https://a.example/o/d" || c.Port != 2 {
		t.Errorf("%q, %d", c.PublicURL, c.Port)
	}
}
