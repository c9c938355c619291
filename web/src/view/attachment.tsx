import type { frame } from '@hermes-mobile/sdk'
import { useEffect, useState } from 'preact/hooks'
import type { Attachments } from '../conversation/attachments'
import type { Attachment, FileContent } from '../storage/attachmentStore'
import { newID } from '../conversation/id'
import { locale, t, type Key } from '../i18n/i18n'
import { formatBytes } from './clock'
import { Icon } from './icon'

const kinds: Record<string, Key> = { image: 'kindImage', video: 'kindVideo', audio: 'kindAudio', document: 'kindDocument' }

/** kindRejectedText says which kinds of files the agent accepts. */
export function kindRejectedText(name: string, { media_kinds }: frame.Capabilities): string {
  const list = media_kinds.map((kind) => (kinds[kind] ? t(kinds[kind]) : kind))
  return t('kindRejected', { name, kinds: new Intl.ListFormat(locale.value, { type: 'conjunction' }).format(list) })
}

/** The longer side of a shrunk picture, in pixels. */
const MAX_SIDE = 1600
const PICTURE = /^image\/(jpeg|png|webp|avif|heic|heif)$/

/** prepareAttachment accepts a file, or returns the reason why not. */
export async function prepareAttachment(file: File, limit: number): Promise<Attachment | string> {
  if (file.size === 0) return t('fileEmpty', { name: file.name })
  const smaller = PICTURE.test(file.type) ? await shrink(file).catch(() => undefined) : undefined
  const over = limit > 0 && file.size > limit
  if (over && !(smaller && smaller.blob.size <= limit)) return t('fileTooBig', { name: file.name, size: formatBytes(file.size), limit: formatBytes(limit) })
  return { id: newID(), blob: file, name: file.name || 'file', smaller, reduce: over }
}

/** shrink makes a picture smaller. It returns undefined if that saves little. */
async function shrink(file: File): Promise<FileContent | undefined> {
  const picture = await createImageBitmap(file)
  const scale = MAX_SIDE / Math.max(picture.width, picture.height)
  if (scale >= 1) return undefined
  const canvas = document.createElement('canvas')
  canvas.width = Math.round(picture.width * scale)
  canvas.height = Math.round(picture.height * scale)
  canvas.getContext('2d')!.drawImage(picture, 0, 0, canvas.width, canvas.height)
  picture.close()
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, 'image/jpeg', 0.85))
  if (!blob || blob.size > file.size * 0.8) return undefined
  return { blob, name: file.name.replace(/\.\w+$/, '') + '.jpg' }
}

export function AttachmentRow({ file, attachments }: { file: Attachment; attachments: Attachments }) {
  const [preview, setPreview] = useState('')
  useEffect(() => {
    if (!file.blob.type.startsWith('image/')) return
    const url = URL.createObjectURL(file.blob)
    setPreview(url)
    return () => URL.revokeObjectURL(url)
  }, [file.blob])
  const forced = file.reduce && file.smaller && file.blob.size > file.smaller.blob.size * 100
  return (
    <li>
      {preview ? <img src={preview} alt="" /> : <Icon name="file" />}
      <span class="attached-text"><b dir="auto">{file.name}</b>
        {file.smaller ? (
          <label class="check-line"><input type="checkbox" checked={file.reduce} disabled={forced} onChange={(e) => void attachments.reduce(file.id, e.currentTarget.checked)} />{t('makeSmaller', { from: formatBytes(file.blob.size), to: formatBytes(file.smaller.blob.size) })}</label>
        ) : <small>{formatBytes(file.blob.size)}</small>}
      </span>
      <button type="button" class="round" aria-label={t('remove', { name: file.name })} onClick={() => void attachments.remove(file.id)}><Icon name="close" /></button>
    </li>
  )
}
