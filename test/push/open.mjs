// Reads one notification as JSON from standard input, opens it with the keys of its subscription, checks who signed it, and
// prints {plain, claims, header, signed}.
import { createECDH, createPublicKey, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import ece from 'http_ece'

const { body, privateKey, auth, authorization } = JSON.parse(readFileSync(0, 'utf8'))

const device = createECDH('prime256v1')
device.setPrivateKey(Buffer.from(privateKey, 'base64url'))
const plain = ece.decrypt(Buffer.from(body, 'base64'), { version: 'aes128gcm', privateKey: device, authSecret: auth })

const [, token, key] = /^vapid t=([^,]+), k=([\w-]+)$/.exec(authorization)
const [header, claims, signature] = token.split('.')
const point = Buffer.from(key, 'base64url')
const publicKey = createPublicKey({
  format: 'jwk',
  key: { kty: 'EC', crv: 'P-256', x: point.subarray(1, 33).toString('base64url'), y: point.subarray(33).toString('base64url') }
})
const signed = verify('sha256', Buffer.from(`${header}.${claims}`), { key: publicKey, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'))

const json = (part) => JSON.parse(Buffer.from(part, 'base64url').toString())
console.log(JSON.stringify({ plain: plain.toString(), header: json(header), claims: json(claims), key, signed }))
