package gateway

// sessionQueue keeps the turns of one session apart, where the gateway has no lock for them (0.19, api-facts §4.5).
type sessionQueue struct{}
