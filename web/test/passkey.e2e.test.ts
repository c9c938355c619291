import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, it } from 'node:test'
import type { CDPSession, Page } from 'playwright-core'
import { browserRig, DESKTOP, freePort, type Host, noBrowser, PHONE, Server, until, Visitor } from './rig'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const ADMIN = '8'.repeat(64)
const ELSEWHERE = { 'X-Forwarded-For': '192.0.2.1' }

/**
 * Public is a server that its owner reaches from elsewhere. A browser treats localhost as safe as
 * https.
 */
class Public implements Host {
  private constructor(
    readonly server: Server,
    readonly url: string,
  ) {}

  static async start(mode: string): Promise<Public> {
    const port = await freePort()
    const url = `http://localhost:${port}/`
    return new Public(await Server.start({ MOBILE_ADMIN_TOKEN: ADMIN, MOBILE_PUBLIC_URL: url.slice(0, -1), MOBILE_ADMIN_PASSKEY: mode }, port), url)
  }

  cli(...args: string[]): Promise<string> {
    return this.server.cli(...args)
  }

  /** link opens the admin UI once, at the public address. */
  async link(): Promise<string> {
    return (JSON.parse(await this.cli('admin', '--json')) as { public_url: string }).public_url
  }
}

/** Key is a virtual authenticator of a page, like a laptop with a fingerprint reader. */
class Key {
  private constructor(
    private readonly cdp: CDPSession,
    readonly id: string,
  ) {}

  static async plug(page: Page): Promise<Key> {
    const cdp = await page.context().newCDPSession(page)
    await cdp.send('WebAuthn.enable')
    const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
      options: { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true },
    })
    return new Key(cdp, authenticatorId)
  }

  /** verifies sets whether it recognizes its user. */
  async verifies(isUserVerified: boolean): Promise<void> {
    await this.cdp.send('WebAuthn.setUserVerified', { authenticatorId: this.id, isUserVerified })
  }

  /** copy returns its contents for another authenticator. */
  async copy(): Promise<{ credentialId: string; signCount: number }> {
    const { credentials } = await this.cdp.send('WebAuthn.getCredentials', { authenticatorId: this.id })
    return credentials[0]!
  }

  async take(credential: object): Promise<void> {
    await this.cdp.send('WebAuthn.addCredential', { authenticatorId: this.id, credential: credential as never })
  }

  async forget(credentialId: string): Promise<void> {
    await this.cdp.send('WebAuthn.removeCredential', { authenticatorId: this.id, credentialId })
  }
}

interface Finding {
  id: string
  nodes: { target: string[] }[]
}

describe('passkeys of the admin UI', { skip: noBrowser, concurrency: 1 }, () => {
  const rig = browserRig()

  async function accessible(page: Page): Promise<void> {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.evaluate(axe)
      const findings = await page.evaluate(async () => {
        const { violations } = await (window as unknown as { axe: { run(options: object): Promise<{ violations: Finding[] }> } }).axe.run({ resultTypes: ['violations'] })
        return violations.map(({ id, nodes }) => id + ': ' + nodes.map((node) => node.target.join(' ')).join(' | '))
      })
      assert.deepEqual(findings, [], colorScheme)
    }
  }

  const keys = (page: Page) => page.getByRole('region', { name: 'Passkeys' })
  const entered = (page: Page) => page.getByRole('heading', { level: 2 }).waitFor()

  async function add(page: Page, name: string): Promise<void> {
    await page.getByRole('navigation').getByRole('link', { name: 'Tokens' }).click()
    await keys(page).getByRole('button', { name: 'Add passkey' }).click()
    await page.getByRole('dialog').getByLabel('Name').fill(name)
    await page.keyboard.press('Enter')
    await keys(page).getByRole('listitem').filter({ hasText: name }).waitFor()
  }

  /** leaves ends a visit with rejected logins, which the browser logs as errors. */
  async function leaves(visitor: Visitor): Promise<void> {
    assert.deepEqual((await visitor.leave()).filter((line) => !/status of 40[13]|status of 422/.test(line)), [])
  }

  it('registers a passkey, and logs in with it instead of the token', async () => {
    const host = await Public.start('optional')
    const owner = await Visitor.come(rig.browser, host, { ...DESKTOP, extraHTTPHeaders: ELSEWHERE })
    const page = await owner.open(host.url + 'admin')
    const key = await Key.plug(page)
    await page.getByLabel('Admin token').fill(ADMIN)
    assert.equal(await page.getByRole('button', { name: 'Log in with a passkey' }).count(), 0)
    await page.keyboard.press('Enter')
    await entered(page)
    await page.getByRole('navigation').getByRole('link', { name: 'Tokens' }).click()
    await keys(page).getByText('No passkeys yet.').waitFor()
    await add(page, 'Laptop')
    await keys(page).getByText('never used').waitFor()
    await accessible(page)

    // The same authenticator doesn't register a second passkey.
    await keys(page).getByRole('button', { name: 'Add passkey' }).click()
    await page.getByRole('dialog').getByLabel('Name').fill('Again')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByRole('alert').filter({ hasText: 'already has a passkey' }).waitFor()
    await page.keyboard.press('Escape')

    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByRole('button', { name: 'Log in with a passkey' }).waitFor()
    await accessible(page)
    await page.getByRole('button', { name: 'Log in with a passkey' }).focus()
    await page.keyboard.press('Enter')
    await entered(page)
    await page.reload()
    await entered(page)
    await page.getByRole('navigation').getByRole('link', { name: 'Tokens' }).click()
    await keys(page).getByText(/used .* ago|used now/).waitFor()

    // A user whom the authenticator doesn't recognize can't log in.
    await page.getByRole('button', { name: 'Log out' }).click()
    await key.verifies(false)
    await page.getByRole('button', { name: 'Log in with a passkey' }).click()
    await page.getByRole('alert').filter({ hasText: 'The browser cancelled' }).waitFor()
    await key.verifies(true)
    await page.getByRole('button', { name: 'Log in with a passkey' }).click()
    await entered(page)

    await page.getByRole('navigation').getByRole('link', { name: 'Tokens' }).click()
    await keys(page).getByRole('button', { name: 'Rename Laptop' }).click()
    await page.getByRole('dialog').getByLabel('Name').fill('Old laptop')
    await page.keyboard.press('Enter')
    await keys(page).getByRole('listitem').filter({ hasText: 'Old laptop' }).waitFor()
    assert.match(await host.cli('admin', 'passkeys', 'list'), /^Old laptop +localhost /m)
    await keys(page).getByRole('button', { name: 'Remove Old laptop' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click()
    await keys(page).getByText('No passkeys yet.').waitFor()

    const log = await host.cli('audit', '--action', 'passkey.*')
    for (const action of ['added', 'login', 'renamed', 'removed']) assert.match(log, new RegExp(`admin +192\\.0\\.2\\.1 +passkey\\.${action} `))
    await leaves(owner)
    await host.server.end()
  })

  it('can be required instead of the token, while a link still works', async () => {
    const host = await Public.start('required')
    const owner = await Visitor.come(rig.browser, host, { ...PHONE, extraHTTPHeaders: ELSEWHERE })
    const page = await owner.open(host.url + 'admin')
    await page.getByText('hermes-mobile admin', { exact: true }).waitFor()
    assert.equal(await page.getByLabel('Admin token').count(), 0)
    assert.equal(await page.getByRole('button', { name: 'Log in with a passkey' }).count(), 0)
    await Key.plug(page)
    await page.goto(await host.link())
    await entered(page)
    await add(page, 'Phone')
    await accessible(page)
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByRole('button', { name: 'Log in with a passkey' }).click()
    await entered(page)
    // A lost passkey is removed on the server, which ends its logins.
    await host.cli('admin', 'passkeys', 'remove', 'Phone')
    await page.getByText('hermes-mobile admin', { exact: true }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Log in with a passkey' }).count(), 0)
    await page.goto(await host.link())
    await entered(page)
    await page.getByLabel('Language').selectOption('ru')
    await page.getByRole('navigation').getByRole('link', { name: 'Токены' }).click()
    await page.getByText('Подходит только ключ доступа').waitFor()
    await accessible(page)
    await leaves(owner)
    await host.server.end()
  })

  it('can be required after the token, and detect a copied passkey', async () => {
    const host = await Public.start('both')
    const owner = await Visitor.come(rig.browser, host, { ...DESKTOP, extraHTTPHeaders: ELSEWHERE })
    const page = await owner.open(host.url + 'admin')
    const key = await Key.plug(page)
    await page.getByLabel('Admin token').fill(ADMIN)
    await page.keyboard.press('Enter')
    await page.getByRole('alert').filter({ hasText: 'No passkeys are registered' }).waitFor()
    await page.goto(await host.link())
    await entered(page)
    await add(page, 'Laptop')
    const copy = await key.copy()
    const login = async () => {
      await page.getByRole('button', { name: 'Log out' }).click()
      await page.getByLabel('Admin token').fill(ADMIN)
      await page.keyboard.press('Enter')
    }
    await login()
    await entered(page)
    await login()
    await entered(page)
    // An attacker copies the authenticator at this point.
    await key.forget(copy.credentialId)
    await key.take({ ...copy, signCount: 1 })
    await login()
    await page.getByRole('alert').filter({ hasText: 'may have been copied' }).waitFor()
    assert.match(await host.cli('audit', '--action', 'passkey.suspect'), /passkey\.suspect .* counter \d+ after \d+/)
    await until(async () => /admin\.token/.test(await host.cli('audit')), 'the audit log has the token')
    await leaves(owner)
    await host.server.end()
  })
})
