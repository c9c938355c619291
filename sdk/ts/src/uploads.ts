/**
 * Files that survive the end of the page or process during the upload. A store keeps them until the server has them. The next run sends
 * them again under the same id, by which the server drops duplicates.
 *
 * @packageDocumentation
 */
import { newID } from './config.js'
import type { Device } from './device.js'
import { ClosedError, FrameError } from './errors.js'
import type { Outgoing } from './outgoing.js'
import type { FileToSend } from './upload.js'

/** A file that waits for its receipt. A browser's IndexedDB can store it unchanged when its data is a Blob or bytes. */
export interface KeptFile extends Omit<FileToSend, 'progress'> {
  /** The id of the message. */
  id: string
}

/** Stores such files. Each method may return at once or return a promise. One Uploads uses it at a time. */
export interface FileStore {
  /** Returns the files in the order of add. It is called once. */
  load(): KeptFile[] | Promise<KeptFile[]>
  /** Once it is done, the file must be as durable as the store promises. */
  add(file: KeptFile): void | Promise<void>
  /** Removes a file. An unknown id is not an error. */
  remove(id: string): void | Promise<void>
}

/** Uploads sends files of one device and stores them until their receipt. openUploads creates it. */
export class Uploads {
  /** @internal */
  constructor(
    private readonly device: Device,
    private readonly store: FileStore,
  ) {}

  /** send is Device.sendFile with a store: once the promise resolves, the store has the file until its receipt. */
  async send({ progress, ...file }: FileToSend, { id = newID() } = {}): Promise<Outgoing> {
    await this.store.add({ ...file, id })
    try {
      return await this.begin({ ...file, id }, progress)
    } catch (error) {
      if (!(error instanceof ClosedError)) await this.store.remove(id)
      throw error
    }
  }

  /** @internal */
  async begin({ id, ...file }: KeptFile, progress: FileToSend['progress']): Promise<Outgoing> {
    const outgoing = await this.device.sendFile({ ...file, progress }, { id })
    void this.settle(outgoing)
    return outgoing
  }

  /** Removes a file with its receipt. A file that the end of the device interrupted stays, and so does one that the store fails to remove: the server knows it by its id. */
  private async settle(outgoing: Outgoing): Promise<void> {
    try {
      await outgoing.wait().catch((error: unknown) => {
        if (error instanceof ClosedError) throw error
      })
      await this.store.remove(outgoing.id)
    } catch {
      // The next run sends it.
    }
  }
}

/** Options for the files of an earlier run. */
export interface Leftovers {
  /** Like FileToSend.progress. */
  progress?: (file: KeptFile, sent: number, total: number) => void
  /** Called for a file that exceeds the server's current limit, and is removed. Files that the server rejects come as an event `receipt`. */
  refused?: (file: KeptFile, error: FrameError) => void
}

/** openUploads sends the files of an earlier run, and returns an Uploads for more. */
export async function openUploads(device: Device, store: FileStore, { progress, refused }: Leftovers = {}): Promise<Uploads> {
  const uploads = new Uploads(device, store)
  for (const file of await store.load()) {
    try {
      await uploads.begin(file, (sent, total) => progress?.(file, sent, total))
    } catch (error) {
      // The agent accepts no files now, or the device was closed: the file stays for the next run.
      if (!(error instanceof FrameError)) continue
      await store.remove(file.id)
      refused?.(file, error)
    }
  }
  return uploads
}
