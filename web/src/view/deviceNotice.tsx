import type { DeviceItem } from '../conversation/item'
import { deviceNoticeText } from '../conversation/deviceNotice'
import type { Client } from '../conversation/client'
import { t } from '../i18n/i18n'
import { formatTime } from './clock'
import { openDialog } from './dialog'
import { Icon } from './icon'

/** DeviceNotice tells the user about another device and can revoke it. */
export function DeviceNotice({ client, item }: { client: Client; item: DeviceItem }) {
  const { device, revocable, revoked } = item
  const name = device.name || device.id
  const revoke = () =>
    openDialog({
      title: t('revokeDevice'), text: t('revokeDeviceConfirm', { name }), label: t('revokeDevice'), danger: true, back: `[data-device-news="${CSS.escape(item.id)}"]`,
      run: async () => {
        await client.revoke(device.id)
        return true
      },
    })
  return (
    <section class={`card device-notice ${revoked ? 'finished' : ''}`} aria-label={t('yourDevices')} data-device-news={item.id} tabindex={-1}>
      <header><Icon name="shield" /><b>{t('yourDevices')}</b><time dateTime={new Date(item.at).toISOString()}>{formatTime(item.at)}</time></header>
      <p class="card-text"><bdi>{deviceNoticeText(item)}</bdi></p>
      <p class="muted"><code dir="ltr">{device.id}</code>{device.platform && <> · <bdi>{device.platform}</bdi></>}</p>
      {revoked ? (
        <p class="outcome" role="status">{t('deviceRevoked')}</p>
      ) : revocable ? (
        <div class="options"><button type="button" class="danger" aria-label={t('revokeDeviceNamed', { name })} onClick={revoke}>{t('revokeDevice')}</button></div>
      ) : (
        <p class="outcome">{t('ownerRevokes')}</p>
      )}
    </section>
  )
}
