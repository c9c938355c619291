// client.ts sends one message and prints the reply.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { MemoryStore, open } from '@hermes-mobile/sdk'
import { WebSocket } from 'ws' // a browser, and Node from version 22, has its own

/** FileStore stores the cursor, unsent messages and the device's token. A web page does the same with localStorage or IndexedDB. */
class FileStore extends MemoryStore {
  constructor(private readonly file: string) {
    super(existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {})
  }

  protected override changed(): void {
    writeFileSync(this.file + '.new', JSON.stringify(this.load()), { mode: 0o600 })
    renameSync(this.file + '.new', this.file)
  }
}

const device = await open({
  url: process.env.HERMES_URL ?? '', // wss://agent.example.com/ws
  pair: process.env.HERMES_PAIR, // the first time only
  device: { id: 'bot-2', name: 'Bot' },
  store: new FileStore('my-device.json'),
  WebSocket,
})
await device.waitOnline() // throws an error with a message for the user
await device.send('What is the weather?')
for await (const event of device.events()) {
  if (event.type === 'message' && event.final) {
    console.log(event.text)
    break
  }
  if (event.type === 'card') {
    console.log(event.text, event.command) // ask the user; this example always denies
    if (event.kind === 'exec_approval') await device.answer(event.id, 'deny')
  }
}
await device.close()
